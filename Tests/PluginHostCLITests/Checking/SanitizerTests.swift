import Foundation
import Testing

@testable import PluginHostCLI
@testable import TestSupport

/// The recipe of the article *Checking a module before it is shipped*.
@Suite(.timeLimit(.minutes(30))) struct SanitizerTests: Checking {
    /// The runtime of the address sanitizer; `nil` if there is none.
    private static let runtime: String? = {
        let path = try? Tool("clang")?.run(["-print-file-name=libclang_rt.asan-x86_64.so"])
        return path.map { $0.trimmingCharacters(in: .newlines) }.flatMap { access($0, R_OK) == 0 ? $0 : nil }
    }()

    @Test(.disabled(if: runtime == nil || isSanitized, "There is no runtime to load."))
    func `A module is checked under the address sanitizer`() throws {
        var module = CModule()
        module.body = "volatile char *volatile text = malloc(8); text[8] = 1; free((void *)text);"
        let file = try module.build(["-g", "-fsanitize=address", "-shared-libasan"])
        let outcome = try program().run(
            ["check", file, "--trust", "--no-calls"], environment: environment)
        #expect(outcome.code == 0, "\(outcome)")
        let called = try program().run(["check", file, "--trust"], environment: environment)
        #expect(
            called.code == 65 && called.output.contains("FAILURE  replies      It crashes the process at Good/answer"))
        #expect(called.errors.contains("AddressSanitizer: heap-buffer-overflow"), "\(called)")
    }

    @Test(.disabled(if: runtime == nil || isSanitized || Tool("rustc") == nil, "There is no runtime, or no compiler."))
    func `A module in Rust is checked under the address sanitizer`() async throws {
        let folder = try TemporaryFolder()
        let source = try String(contentsOfFile: "\(repository)/Examples/Rust/tally.rs", encoding: .utf8)
        let begin = "let n = arguments[0].as_int().unwrap_or(1);\n"
        try #require(source.contains(begin))
        let overflow = """
            let bytes = vec![0u8; 8];
            std::hint::black_box(unsafe { *bytes.as_ptr().add(std::hint::black_box(8)) });

            """
        for name in ["abi.rs", "tally.json"] { try folder.copy("\(repository)/Examples/Rust/\(name)", as: name) }
        let file = try folder.file("tally.rs", source.replacing(begin, with: begin + overflow))
        let library = "\(folder.path)/libTally.so"
        // Options that are not stable need this variable in a stable compiler.
        try await #require(Tool("env")).runAside([
            "RUSTC_BOOTSTRAP=1", Tool("rustc")!.path, "--edition", "2021", "-g", "-Z", "sanitizer=address",
            "--crate-type", "cdylib", "-o", library, file,
        ])
        try expectOverflow(at: "Tally/add", "tally.rs", in: library)
    }

    @Test(.disabled(if: runtime == nil || isSanitized, "There is no runtime to load."))
    func `A module in Swift is checked under the address sanitizer`() async throws {
        let folder = try TemporaryFolder()
        let file = try folder.file(
            "Over.swift",
            """
            import PluginABI

            @_cdecl("plugin_module_entry")
            public func entry() -> UnsafePointer<plugin_module> { Over.export() }

            struct Over: Module {
                static let manifest = Manifest("Over", version: "1.0.0") {
                    Target("Over") {
                        Action("run", .required("n", Int.self)) { n in
                            let memory = UnsafeMutablePointer<Int>.allocate(capacity: 4)
                            defer { memory.deallocate() }
                            memory[4] = n
                            return memory[4]
                        }
                    }
                }
            }
            """)
        let library = "\(folder.path)/libOver.so"
        let objects = try ["PluginABI", "CPluginABI"].flatMap { target in
            try FileManager.default.contentsOfDirectory(atPath: built("\(target).build"))
                .filter { $0.hasSuffix(".o") }.map { built("\(target).build/\($0)") }
        }
        try await #require(Tool("swiftc")).runAside(
            SwiftSource.modules + [
                "-g", "-sanitize=address", "-module-name", "Over", "-parse-as-library", "-emit-library", "-o", library,
                file,
            ] + objects)
        try expectOverflow(at: "Over/run", "Over.swift", in: library)
    }

    /// Checks that a check fails because an action writes or reads past the end of a block of memory.
    private func expectOverflow(at action: String, _ source: String, in file: String) throws {
        #expect(try program().run(["check", file, "--trust", "--no-calls"], environment: environment).code == 0)
        let called = try program().run(["check", file, "--trust"], environment: environment)
        let line = called.output.split(separator: "\n").first { $0.hasPrefix("FAILURE  replies") } ?? ""
        #expect(called.code == 65 && line.contains("It crashes the process at \(action)"), "\(called)")
        #expect(line.contains("/\(source):") == (Symbolizer().tool != nil), "\(called)")
        #expect(called.errors.contains("AddressSanitizer: heap-buffer-overflow"), "\(called)")
    }

    private var environment: [String: String] {
        ["ASAN_OPTIONS": "abort_on_error=1:detect_leaks=0", "LD_PRELOAD": Self.runtime ?? ""]
    }
}
