import PluginTestKit
import Testing

/// The module in C, which the tests treat like the others.
@Suite struct ModuleCTests {
    @Test func `The module adds, and uses defaults for missing parameters`() async throws {
        let bench = try await TestBench(.product("ModuleC"))
        #expect(try bench.host.perform("C", "add", ["a": 2, "b": 3]) == 5)
        #expect(try bench.host.perform("C", "add", ["a": 2]) == 3)
        let error = #expect(throws: PluginError.self) { try bench.host.perform("C", "add", [.int(.max)]) }
        #expect(error?.code == "overflow" && error?.source == "ModuleC")
    }

    @Test func `The module passes on a greeting and an error`() async throws {
        let greeter = Manifest("Greeter", version: "1.0.0") {
            Target("B") {
                Action("greet", .required("name", String.self)) { name in
                    guard name != "Bob" else { throw PluginError("unwelcome", "Not him.") }
                    return "Hi, \(name)"
                }
            }
        }
        let bench = try await TestBench(.product("ModuleC"), peers: .fake(greeter))
        #expect(try bench.host.perform("C", "relay", ["name": "Ada"]) == "Hi, Ada")
        let error = #expect(throws: PluginError.self) { try bench.host.perform("C", "relay", ["name": "Bob"]) }
        #expect(error?.code == "unwelcome" && error?.source == "Greeter")
    }

    @Test func `The module counts what is sold, and another build counts from the beginning`() async throws {
        let bench = try await TestBench(.product("ModuleC"))
        try await bench.host.post("shop.sold")
        try await bench.host.post("shop.sold")
        #expect(try bench.host.perform("C", "sold") == 2)
        try await bench.replace()
        #expect(try bench.host.perform("C", "sold") == 0)
        let report = await bench.finish()
        #expect(report.isClean, "\(report)")
    }
}
