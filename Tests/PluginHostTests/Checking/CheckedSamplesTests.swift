import Foundation
import PluginABI
import PluginHost
import Testing

/// The examples in other languages pass, where there is a compiler for them.
@Suite(.timeLimit(.minutes(30))) struct CheckedSamplesTests {
    private static let repository = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../..").standardized.path

    private static func path(of compiler: String) -> String? {
        (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin").split(separator: ":").map { "\($0)/\(compiler)" }
            .first { access($0, X_OK) == 0 }
    }

    private func check(_ compiler: String, _ arguments: [String]) throws {
        let folder = try TemporaryFolder()
        let library = "\(folder.path)/libSample.so"
        let process = Process()
        process.executableURL = URL(filePath: try #require(Self.path(of: compiler)))
        process.arguments = arguments + ["-o", library]
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
        var program = try HostProgram()
        program.namesFolder = false
        let outcome = try program.run("check", library, "--json", "--trust", "--seed", "1")
        #expect(outcome.code == 0)
        for result in try Value(json: outcome.output)["checks"]?.list ?? [] {
            #expect(result["outcome"] == "pass", "\(result)")
        }
    }

    @Test(.enabled(if: path(of: "g++") != nil)) func `the example in C++ passes every check`() throws {
        try check(
            "g++",
            ["-std=c++20", "-O2", "-shared", "-fPIC", "-fvisibility=hidden"]
                + ["-I", "\(Self.repository)/Sources/CPluginABI/include"]
                + ["\(Self.repository)/Examples/CPlusPlus/Words.cpp"])
    }

    @Test(.enabled(if: path(of: "rustc") != nil)) func `the example in Rust passes every check`() throws {
        try check(
            "rustc",
            ["--edition", "2021", "-O", "--crate-type", "cdylib", "\(Self.repository)/Examples/Rust/tally.rs"])
    }
}
