import CPluginHost
import Foundation
import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// Every kind of bad file in one folder, together with a good module.
@Suite(.timeLimit(.minutes(30)), .serialized) struct BadFilesTests {
    /// A file, how it is made, and words that its error must contain.
    struct Case: Sendable {
        let file: String
        let code: PluginError.Code
        let words: [String]
        let make: @Sendable (_ path: String) throws -> Void

        init(
            _ file: String, _ code: PluginError.Code, _ words: String...,
            make: @escaping @Sendable (_ path: String) throws -> Void
        ) {
            (self.file, self.code, self.words, self.make) = (file, code, words, make)
        }

        /// A module in C that is bad in one respect.
        init(
            _ file: String, _ code: PluginError.Code, _ words: String..., flags: [String] = [],
            _ change: @escaping @Sendable (inout CModule) -> Void
        ) {
            (self.file, self.code, self.words) = (file, code, words)
            make = { path in
                let name = (file as NSString).deletingPathExtension
                var module = CModule(name: name)
                change(&module)
                try copyFile(module.build(flags), to: path)
            }
        }
    }

    private static func write(_ data: some Sequence<UInt8>, _ path: String) throws {
        try writeFile(Data(data), to: path)
    }

    private static func good() throws -> Data {
        try Data(contentsOf: URL(fileURLWithPath: CModule(name: "Patched").build()))
    }

    static let files: [Case] = [
        Case("empty.so", .invalidFile, "empty") { try write([], $0) },
        Case("text.so", .invalidFile, "text file") { try write("Read me first.\n".utf8, $0) },
        Case("cut-1.so", .invalidFile) { try write(good().prefix(1), $0) },
        Case("cut-63.so", .invalidFile) { try write(good().prefix(63), $0) },
        Case("cut-512.so", .invalidFile) { try write(good().prefix(512), $0) },
        Case("cut-4096.so", .invalidFile) { try write(good().prefix(4096), $0) },
        Case("cut-last.so", .invalidFile) { try write(good().dropLast(), $0) },
        Case("machine.so", .invalidFile, "machine") { path in
            var data = try good()
            data[18] = 0xF3  // RISC-V
            data[19] = 0
            try write(data, path)
        },
        Case("class.so", .invalidFile, "32-bit") { path in
            var data = try good()
            data[4] = 1
            try write(data, path)
        },
        Case("program.so", .invalidFile, "executable") { path in
            let program = try CFixture.program("int main(void) { return 0; }")
            try copyFile(program, to: path)
        },
        Case("no-entry.so", .invalidFile, "plugin_module_entry") { path in
            let library = try CFixture.build("int something_else(void) { return 0; }")
            try copyFile(library, to: path)
        },
        Case("dependency.so", .openFailed, "libmissing-for-test.so") { path in
            let library = try CFixture.build(
                "int missing_for_test(void) { return 0; }", ["-Wl,-soname,libmissing-for-test.so"],
                name: "libmissing-for-test.so")
            let module = try CModule(name: "Needy").build([library, "-Wl,--no-as-needed"])
            try copyFile(module, to: path)
        },
        Case("symbol.so", .openFailed, "nobody_defines_this") {
            $0.code = "void nobody_defines_this(void);"
            $0.body = "nobody_defines_this();"
        },
        Case("null.so", .invalidDescription, "null") { $0.entry = "return NULL;" },
        Case("magic.so", .invalidDescription, "PLUGIN_ABI_MAGIC", "0x2A") { $0.magic = "42" },
        Case("major.so", .incompatible, "2.0", "1.0") { $0.major = "2" },
        Case("older.so", .incompatible, "0.9") { ($0.major, $0.minor) = ("0", "9") },
        Case("short.so", .invalidDescription, "16") { $0.size = "16" },
        Case(
            "toolchain.so", .incompatible, "swift 5.9", Toolchain.current,
            flags: ["-L", runtimeFolder, "-Wl,--no-as-needed", "-lswiftCore", "-Wl,-rpath,\(runtimeFolder)"]
        ) { $0.toolchain = "TEXT(\"swift 5.9\")" },
        Case("toolchain-huge.so", .invalidDescription, "toolchain") { $0.toolchain = "{manifest, 1ull << 40}" },
        Case("toolchain-null.so", .invalidDescription, "toolchain") { $0.toolchain = "{NULL, 9}" },
        Case("json.so", .invalidManifest, "JSON") { $0.manifest = "{\"name\": \"x\"," },
        Case("list.so", .invalidManifest, "object") { $0.manifest = "[]" },
        Case("utf8.so", .invalidManifest, "UTF-8") {
            $0.code = "static const char bad[] = \"{\\\"name\\\": \\\"\\xff\\\"}\";"
            $0.entry = "module.manifest = PLUGIN_STRING(bad);"
        },
        Case("manifest-none.so", .invalidManifest, "no manifest") { $0.manifestCount = "0" },
        Case("manifest-huge.so", .invalidManifest, "67108864", "1048576") { $0.manifestCount = "64 << 20" },
        Case("manifest-endless.so", .invalidManifest, "18446744073709551615") { $0.manifestCount = "UINT64_MAX" },
        Case("nested.so", .invalidManifest, "128") {
            $0.manifest = String(repeating: "[", count: 10000) + String(repeating: "]", count: 10000)
        },
        Case("name-odd.so", .invalidManifest, "not allowed") { $0.manifest = #"{"name": "../x", "version": "1.0.0"}"# },
        Case("name-empty.so", .invalidManifest, "not allowed") { $0.manifest = #"{"name": "", "version": "1.0.0"}"# },
        Case("name-zero.so", .invalidManifest, "not allowed") {
            $0.manifest = #"{"name": "a\u0000b", "version": "1.0.0"}"#
        },
        Case("version.so", .invalidManifest, "semantic version") { $0.version = "one" },
        Case("twice.so", .invalidManifest, "answer", "twice") {
            $0.manifest = """
                {"name": "twice", "version": "1.0.0", "targets": [{"name": "twice", "actions": [
                  {"name": "answer"}, {"name": "answer"}]}]}
                """
        },
        Case("native.so", .invalidManifest, "nativeAnswer", "remote") {
            $0.manifest = """
                {"name": "native", "version": "1.0.0", "targets": [{"name": "native", "actions": [
                  {"name": "nativeAnswer", "remote": true}]}]}
                """
        },
        Case("function-null.so", .invalidDescription, "x/y", "null") {
            $0.moreFunctions = "{TEXT(\"x/y\"), NULL, NULL}"
        },
        Case("functions-null.so", .invalidDescription, "pointer is null") { $0.functions = "NULL" },
        Case("functions-huge.so", .invalidDescription, "4294967296") { $0.functionCount = "1ull << 32" },
        Case("functions-none.so", .invalidManifest, "functions-none/answer") { $0.functionCount = "0" },
        Case("function-superfluous.so", .invalidManifest, "x/y") {
            $0.moreFunctions = "{TEXT(\"x/y\"), action_answer, NULL}"
        },
        Case("function-twice.so", .invalidDescription, "two functions", "function-twice/answer") {
            $0.moreFunctions = "{TEXT(\"function-twice/answer\"), action_answer, NULL}"
        },
        Case("function-ascii.so", .invalidDescription, "“\u{212A}/answer”", "ASCII") {
            // The Kelvin sign and the letter K are equal as Swift strings.
            $0.target = "K"
            $0.moreFunctions = "{TEXT(\"\u{212A}/answer\"), action_answer, NULL}"
        },
        Case("function-name.so", .invalidDescription, "functions[1].name") {
            $0.moreFunctions = "{{NULL, 5}, action_answer, NULL}"
        },
        Case("factories-null.so", .invalidDescription, "factories", "pointer is null") { $0.factoryCount = "3" },
        Case("factories-huge.so", .invalidDescription, "factories", "100001") {
            $0.code = "static plugin_factory made[1];"
            ($0.factories, $0.factoryCount) = ("made", "100001")
        },
        Case("factory-null.so", .invalidDescription, "factory-null", "make") {
            $0.code = "static plugin_factory made[] = {{{\"factory-null\", 12}, NULL, NULL, NULL}};"
            ($0.factories, $0.factoryCount) = ("made", "1")
        },
        Case("factory-twice.so", .invalidDescription, "two factories") {
            $0.code = """
                static void *make(void *data, const plugin_call *call) { (void)call; return data; }
                static plugin_factory made[] = {{{"x", 1}, make, NULL, NULL}, {{"x", 1}, make, NULL, NULL}};
                """
            ($0.factories, $0.factoryCount) = ("made", "2")
        },
        Case("factory-superfluous.so", .invalidManifest, "factory", "“x”") {
            $0.code = """
                static void *make(void *data, const plugin_call *call) { (void)call; return data; }
                static plugin_factory made[] = {{{"x", 1}, make, NULL, NULL}};
                """
            ($0.factories, $0.factoryCount) = ("made", "1")
        },
        Case("factory-missing.so", .invalidManifest, "factory-missing", "no factory") {
            $0.manifest = """
                {"name": "m", "version": "1.0.0", "targets": [{"name": "factory-missing", "instance": "shared",
                  "actions": [{"name": "answer"}]}]}
                """
        },
        Case("activate.so", .activationFailed, "17") { $0.activate = "return 17;" },
        Case("set-up.so", .activationFailed, "not today") { $0.setUp = "refuse(call, \"not today\"); return;" },
        Case("dangling.so", .unreadable, "link", "does not exist") { symlink("nowhere", $0) },
        Case("loop.so", .unreadable, "link", "itself") { symlink("loop.so", $0) },
        Case("folder.so", .invalidFile, "a folder") { mkdir($0, 0o755) },
        Case("fifo.so", .invalidFile, "a FIFO") { mkfifo($0, 0o644) },
        Case("device.so", .invalidFile, "a device") { symlink("/dev/zero", $0) },
        Case("socket.so", .invalidFile, "a socket") { path in
            // The socket is bound to a short path: the path of a socket has at most 107 bytes.
            let short = "\(NSTemporaryDirectory())/s-\(UUID().uuidString.prefix(8))"
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: short.utf8) }
            let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(descriptor) }
            _ = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            rename(short, path)
        },
    ]

    /// The folder from which this process has loaded its Swift runtime.
    private static let runtimeFolder: String = {
        guard let path = plugin_host_loaded_library("libswiftCore.so") else { return "" }
        return (String(cString: path) as NSString).deletingLastPathComponent
    }()

    @Test func `Each bad file fails with an error that names it, and everything else loads`() throws {
        let test = try TestHost { configuration, _ in configuration.watches = false }
        for file in Self.files { try file.make("\(test.plugins)/\(file.file)") }
        try CModule(name: "Good").build(into: test.plugins, as: "good.so")
        try CModule(name: "Zeta").build(into: test.plugins, as: "zeta.so")
        try test.start()
        #expect(test.answer("Good") == "yes" && test.answer("Zeta") == "yes")
        #expect(test.host.modules.count == Self.files.count + 2)
        #expect(test.host.problems.isEmpty)
        for file in Self.files {
            let status = try #require(test.status(file.file), "\(file.file)")
            let message = status.error?.message ?? ""
            #expect(status.state == .failed, "\(file.file)")
            #expect(status.error?.code == file.code, "\(file.file): \(message)")
            #expect(message.contains("\(test.plugins)/\(file.file)"), "\(message)")
            for word in file.words { #expect(message.contains(word), "\(file.file): \(message)") }
            #expect(!message.contains("/staging/"), "\(message)")
            #expect(!message.contains("\n"), "\(message)")
        }
    }

    @Test func `No module of a bad file can be called`() throws {
        let test = try TestHost { configuration, _ in configuration.watches = false }
        for file in Self.files { try file.make("\(test.plugins)/\(file.file)") }
        try test.start()
        for file in Self.files {
            let name = (file.file as NSString).deletingPathExtension
            let error = #expect(throws: PluginError.self) { try test.host.perform(name, "answer") }
            #expect(error?.code == .unknownTarget || error?.code == .moduleUnavailable)
        }
    }

    @Test func `A newer minor version is accepted, with keys in the manifest that this host does not know`() throws {
        let test = try TestHost()
        var module = CModule(name: "Newer", minor: "7")
        module.manifest = """
            {"name": "Newer", "version": "1.0.0", "future": true, "hooks": [],
             "targets": [{"name": "Newer", "actions": [{"name": "answer"}]}]}
            """
        try module.build(into: test.plugins, as: "newer.so")
        try test.start()
        #expect(test.answer("Newer") == "yes")
    }

    @Test func `Another toolchain is accepted by a program that allows it`() throws {
        let test = try TestHost { configuration, _ in configuration.allowsOtherToolchains = true }
        let file = try #require(Self.files.first { $0.file == "toolchain.so" })
        try file.make("\(test.plugins)/toolchain.so")
        try test.start()
        #expect(test.answer("toolchain") == "yes")
    }

    @Test func `Another toolchain does not matter to a module that needs no Swift runtime`() throws {
        let test = try TestHost()
        try CModule(toolchain: "TEXT(\"swift 5.9\")").build(into: test.plugins, as: "static.so")
        try test.start()
        #expect(test.answer() == "yes")
    }

    @Test func `A file that this user cannot read fails, and is loaded when it can be read`() async throws {
        await #expect(processExitsWith: .success) {
            let bytes = try Data(contentsOf: URL(filePath: CModule().build()))
            // Root can read everything.
            if geteuid() == 0 { try #require(seteuid(65534) == 0) }
            let test = try TestHost()
            let path = try test.folder.file("plugins/secret.so", bytes, mode: 0)
            try test.start()
            let error = test.status("secret.so")?.error
            #expect(error?.code == .unreadable && error?.message.contains(path) == true)
            chmod(path, 0o600)
            #expect(eventually { test.answer() == "yes" })
            exit(test.answer() == "yes" && error?.code == .unreadable ? 0 : 1)
        }
    }

    @Test func `A module whose setUp fails is deactivated`() throws {
        let test = try TestHost()
        let notes = "\(test.folder.path)/notes"
        var module = CModule()
        module.code = "static void deactivate(void *data) { (void)data; note(\"\(notes)\", \"deactivated\\n\"); }"
        module.setUp = "refuse(call, \"no\"); return;"
        module.entry = "module.deactivate = deactivate;"
        try module.build(into: test.plugins, as: "a.so")
        try test.start()
        #expect(test.states["a.so"] == "failed")
        #expect(try String(contentsOfFile: notes, encoding: .utf8) == "deactivated\n")
    }
}
