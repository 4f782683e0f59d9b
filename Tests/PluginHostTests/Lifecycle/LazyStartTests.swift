import Foundation
import PluginABI
import Synchronization
import Testing

@testable import PluginHost
@testable import TestSupport

@Suite struct LazyStartTests {
    /// A host that starts modules when they are needed, with files of these modules.
    private func makeHost(
        _ modules: [CModule], configure: (inout PluginHost.Configuration) -> Void = { _ in }
    ) throws -> TestHost {
        let host = try TestHost { configuration, folder in
            configuration.start = .lazy
            configuration.watches = false
            configure(&configuration)
            for module in modules { try module.build(into: "\(folder.path)/plugins", as: "\(module.name).so") }
        }
        try host.start()
        return host
    }

    /// A sealed module that notes each start in a file.
    private func module(_ name: String, _ notes: String = "/dev/null", _ setUp: String = "") -> CModule {
        CModule(
            name: name, answer: name, isSealed: true, setUp: "note(\"\(notes)\", \"\(name) \");\n\(setUp)",
            entry: "note(\"\(notes)\", \"open:\(name) \");")
    }

    private func notes(_ path: String) -> String { (try? String(contentsOfFile: path, encoding: .utf8)) ?? "" }

    private func call(_ target: String) -> String {
        """
        plugin_request request = ask("\(target)", "answer");
        host->perform(host, call->token, &request, note_outcome, NULL);
        """
    }

    @Test func `A sealed module is registered, and its first call starts it`() throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/notes"
        let host = try makeHost([module("A", path), module("B", path)])
        #expect(host.states == ["A.so": "registered", "B.so": "registered"])
        #expect(host.status("A.so")?.version == "1.0.0")
        #expect(host.status("A.so")?.targets == ["A"])
        #expect(notes(path) == "")
        #expect(host.answer("A") == "A")
        #expect(host.states == ["A.so": "active", "B.so": "registered"])
        #expect(notes(path) == "open:A A ")
        #expect(host.code("A", "nothing") == .unknownAction)
        #expect(host.code("B", "nothing") == .unknownAction)
        #expect(host.states["B.so"] == "registered")
    }
}
