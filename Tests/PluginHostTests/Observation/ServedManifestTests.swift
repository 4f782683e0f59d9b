import PluginABI
import PluginHost
import Testing

@testable import TestSupport

@Suite struct ServedManifestTests {
    @Test func `The manifest of a module that serves can be read, and only that`() throws {
        let host = try TestHost([CModule(name: "Served").build()])
        let served = try host.host.servedManifest(of: "Served")
        #expect(try Value(json: served.text)["name"] == "Served")
        #expect(served.file.hasSuffix("/0.so"))
        #expect(served.copy != nil)
        let error = #expect(throws: PluginError.self) { try host.host.servedManifest(of: "Servd") }
        #expect(error?.code == .unknownModule)
        #expect(error?.message.contains("Served") == true)
    }
}
