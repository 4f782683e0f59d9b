import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// A manifest that is a pointer: the macro then uses the size of the pointer.
@Suite struct PointerManifestTests {
    @Test func `A manifest of seven bytes is an error that asks about a pointer`() throws {
        let test = try TestHost()
        var module = CModule()
        module.manifestCount = "sizeof(char *) - 1"
        try module.build(into: test.plugins, as: "pointer.so")
        try test.host.start()
        let error = try #require(test.host.modules.first?.error)
        #expect(error.code == .invalidManifest)
        #expect(error.message.contains("has 7 bytes; was PLUGIN_STRING_INIT given a pointer?"), "\(error)")
        #expect(error.message.contains("pointer.so"))
    }
}
