import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Hosts that isolate only some modules: which process opens a file first.
@Suite(.disabled(if: modulesAreIsolated, "All modules are isolated."))
struct NamedIsolationTests {
    /// A module whose constructor adds the number of its process to a file, if its sandbox lets it.
    private func witness(_ name: String, _ file: String, then statements: String = "") -> CModule {
        let body = "char text[20]; sprintf(text, \"%d\\n\", (int)getpid()); note(\"\(file)\", text); \(statements)"
        return CModule(name: name, code: "__attribute__((constructor)) static void begin(void) { \(body) }")
    }

    private func host(
        _ configure: (inout PluginHost.Configuration, TemporaryFolder) throws -> Void
    ) throws -> TestHost {
        try TestHost { configuration, folder in
            configuration.watches = false
            configuration.isolation.rules = [IsolationRule("Named")]
            try configure(&configuration, folder)
        }
    }

    private func processes(_ file: String) -> [pid_t] {
        let text = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").compactMap { pid_t($0) }
    }

    @Test(arguments: [false, true])
    func `Other files are scanned, and one with the name of an isolated module never leaves its sandbox`(
        safeScan: Bool
    ) throws {
        let host = try host { configuration, folder in
            configuration.safeScan = safeScan
            let (plugins, path) = ("\(folder.path)/plugins", folder.path)
            try witness("Named", "\(path)/named").build(into: plugins, as: "libNamed.so")
            try witness("Plain", "\(path)/plain").build(into: plugins, as: "plain.so")
            try witness("Bad", "\(path)/bad", then: "abort();").build(into: plugins, as: "bad.so")
        }
        try host.host.start()
        #expect(host.answer("Named") == "yes" && host.answer("Plain") == "yes")
        #expect(host.host.modules.first { $0.name == "Named" }?.process != nil)
        let plain = processes("\(host.folder.path)/plain")
        #expect(plain.count == 2 && plain.first != getpid() && plain.last == getpid())
        let error = try #require(host.status("bad.so")?.error)
        #expect(error.code == .moduleCrashed && error.message.contains("a constructor "), "\(error)")
        // Its sandbox grants no files.
        #expect(processes("\(host.folder.path)/named").isEmpty)
    }

    @Test(arguments: [false, true])
    func `A file with another name is opened without a sandbox once, by a process that ends`(fails: Bool) throws {
        let host = try host { configuration, folder in
            var module = witness("Named", "\(folder.path)/witness")
            if fails { module.activate = "return 1;" }
            try module.build(into: "\(folder.path)/plugins", as: "other.so")
        }
        try host.host.start()
        if fails {
            // Its name is known nevertheless.
            #expect(throws: PluginError.self) { try host.host.restart("Named") }
            #expect(host.states == ["other.so": "failed"])
        } else {
            #expect(host.host.modules.first?.process != nil)
            try host.host.restart("Named")
            #expect(host.answer("Named") == "yes")
        }
        let processes = processes("\(host.folder.path)/witness")
        #expect(processes.count == 1 && processes.first != getpid())
    }

    @Test func `The next version in a file with another name is opened only in its sandbox`() throws {
        let host = try host { configuration, folder in
            try CModule(name: "Named").build(into: "\(folder.path)/plugins", as: "other.so")
        }
        try host.host.start()
        var next = witness("Named", "\(host.folder.path)/witness")
        next.version = "2.0.0"
        try next.build(into: "\(host.folder.path)/plugins", as: "other.so")
        try host.host.updateFolders()
        #expect(host.host.modules.map(\.version) == ["2.0.0"] && host.answer("Named") == "yes")
        // Its sandbox grants no files.
        #expect(processes("\(host.folder.path)/witness").isEmpty)
    }

    @Test func `A module that takes the name of an isolated one only in the host is refused`() throws {
        let manifest = """
            {"name": "Named", "version": "1.0.0", "targets": [{"name": "Good", "actions": [{"name": "answer"}]}]}
            """
        let text = "plugin_string_from(\(String(reflecting: manifest)))"
        let host = try host { configuration, folder in
            try CModule(entry: "if (getpid() == \(getpid())) module.manifest = \(text);")
                .build(into: "\(folder.path)/plugins", as: "good.so")
        }
        try host.host.start()
        #expect(host.status("good.so")?.error?.code == .invalidDescription)
        #expect(host.status("good.so")?.error?.message.contains("names itself Named in the process of") == true)
    }

    @Test func `A file whose description cannot be read has the error of its description`() throws {
        let host = try host { configuration, folder in
            try CModule(manifestCount: "1000000").build(into: "\(folder.path)/plugins", as: "good.so")
            try CModule(name: "Null", entry: "module.manifest.bytes = (const char *)8;")
                .build(into: "\(folder.path)/plugins", as: "null.so")
        }
        try host.host.start()
        // Memory that follows the manifest may be readable. The address sanitizer ends a process that lets the kernel
        // read memory which is not.
        let codes: [PluginError.Code] = [.invalidDescription, .openFailed]
        let crash: [PluginError.Code] = sanitizer == "address" ? [.moduleCrashed] : []
        let ofGood = try #require(host.status("good.so")?.error?.code)
        #expect((codes + crash + [.invalidManifest]).contains(ofGood))
        let ofNull = try #require(host.status("null.so")?.error?.code)
        #expect((codes + crash).contains(ofNull))
    }
}
