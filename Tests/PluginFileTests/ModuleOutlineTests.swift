import PluginABI
import Testing

@testable import PluginFile

/// The outline of a manifest and its compact form.
struct ModuleOutlineTests {
    private func manifest(_ more: String = "") throws -> ModuleManifest {
        let json = """
            {"name": "Shop", "version": "1.2.3-beta.1+build.5", "level": "basic", "priority": -7, "start": "lazy",
             "isolation": "required", "exclusive": true, "hooks": ["init", "suspend", "unsuspend"],
             "permissions": [{"connect": 443}],
             "requires": [{"module": "Base", "version": "^1.2 || 3.x"}, {"service": "Login", "optional": true}],
             "targets": [{"name": "Shop", "actions": [{"name": "buy"}]}, {"name": "Cart"}],
             "services": [{"name": "Pay", "version": "2.0.0", "target": "Shop", "priority": 3}],
             "interceptors": [{"name": "guard"}], "events": [{"name": "shop.opened"}, {"name": "host.didStart"}],
             "routes": [{"pattern": "app://shop/\u{E9}/:id", "action": "Shop/buy", "name": "buy", "summary": "Buys.",
                         "transition": "push"\(more)},
                        {"pattern": "app://shop/:id", "action": "Shop/buy", "method": "DELETE"}]}
            """
        return try Array(json.utf8).withUnsafeBytes { try ModuleManifest(parsing: $0, abiMinor: 0) }
    }

    @Test func `The bytes contain the whole outline`() throws {
        let outline = ModuleOutline(try manifest())
        let bytes = try #require(outline.bytes)
        let read = try #require(bytes.withUnsafeBytes { ModuleOutline($0) })
        #expect(read.name == "Shop" && read.version.description == "1.2.3-beta.1+build.5")
        #expect(read.level == .basic && read.priority == -7 && read.start == .lazy && read.isolation == .required)
        #expect(read.isExclusive && read.hasStartHooks && read.hasPermissions)
        #expect(read.targets == ["Shop", "Cart"] && read.interceptors == ["guard"])
        #expect(read.events == ["shop.opened", "host.didStart"])
        #expect(read.services == outline.services && read.services.map(\.priority) == [3])
        #expect(read.requirements == outline.requirements)
        #expect(read.requirements.map(\.description) == ["the module Base ^1.2 || 3.x", "the service Login *"])
        #expect(read.routes == outline.routes && read.routes.first?.transition == .push)
        #expect(read.routes.map(\.method) == [nil, .delete])
        #expect(read.bytes == bytes)
    }

    @Test func `Bytes that are cut, longer or changed are never read beyond their end`() throws {
        let bytes = try #require(ModuleOutline(try manifest()).bytes)
        for count in bytes.indices { #expect(bytes[..<count].withUnsafeBytes { ModuleOutline($0) } == nil) }
        #expect((bytes + [0]).withUnsafeBytes { ModuleOutline($0) } == nil)
        for index in bytes.indices {
            var changed = bytes
            changed[index] ^= 0xFF
            _ = changed.withUnsafeBytes { ModuleOutline($0) }
        }
    }

    @Test func `An outline whose routes have defaults has no bytes`() throws {
        #expect(ModuleOutline(try manifest(", \"defaults\": {\"id\": 1}")).bytes == nil)
    }
}
