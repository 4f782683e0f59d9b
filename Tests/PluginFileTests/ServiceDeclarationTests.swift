import PluginABI
import Testing

@testable import PluginFile

@Suite struct ServiceDeclarationTests {
    private func parse(_ services: String, instance: String = "shared") throws -> [ModuleManifest.Service] {
        var text =
            "{\"name\":\"M\",\"version\":\"1.0.0\",\"services\":\(services),\"targets\":[{\"name\":\"Target\","
            + "\"instance\":\"\(instance)\"}]}"
        return try text.withUTF8 { try ModuleManifest(parsing: UnsafeRawBufferPointer($0), abiMinor: 0).services }
    }

    private func failure(_ services: String, instance: String = "shared") throws -> String {
        let error = try #require(#expect(throws: PluginError.self) { try parse(services, instance: instance) })
        #expect(error.code == .invalidManifest)
        return error.message
    }

    @Test func `A service is read, and omitted keys have their defaults`() throws {
        let services = try parse(
            #"""
            [{"name":"S","version":"1.2.0","target":"Target","priority":-3,"singleton":true,"summary":"s"},
             {"name":"S","version":"1.2.0","target":"Target"}]
            """#)
        let version = try #require(SemanticVersion("1.2.0"))
        #expect(
            services == [
                .init(name: "S", version: version, target: "Target", priority: -3, isSingleton: true, summary: "s"),
                .init(name: "S", version: version, target: "Target"),
            ])
    }

    @Test(arguments: [
        (#"{"version":"1.0.0","target":"Target"}"#, "service number 1: the key \"name\" is missing"),
        (#"{"name":"S","target":"Target"}"#, "service S: the key \"version\" is missing"),
        (#"{"name":"S","version":"1","target":"Target"}"#, "\"1\" is not a semantic version"),
        (#"{"name":"S","version":"1.0.0"}"#, "the key \"target\" is missing"),
        (#"{"name":"S","version":"1.0.0","target":"Targt"}"#, "does not have. Did you mean “Target”?"),
        (#"{"name":"S","version":"1.0.0","target":"Target","priority":1.5}"#, "\"priority\" must be an integer"),
        (#"{"name":"S","version":"1.0.0","target":"Target","singelton":true}"#, "Did you mean “singleton”?"),
        (#"{"name":"a b","version":"1.0.0","target":"Target"}"#, "is not allowed"), (#""S""#, "a JSON object"),
    ])
    func `An invalid service is refused, with the reason`(service: String, message: String) throws {
        let text = try failure("[\(service)]")
        #expect(text.contains(message), "\(text)")
    }

    @Test func `A service cannot be declared twice, or be a singleton of a target with an instance per call`() throws {
        let service = #"{"name":"S","version":"1.0.0","target":"Target","singleton":true}"#
        #expect(try failure("[\(service),\(service)]").contains("S 1.0.0 is declared twice with the priority 0"))
        #expect(try failure("[\(service)]", instance: "perCall").contains("is a singleton"))
        #expect(try failure("{}").contains("\"services\" must be a list"))
    }
}
