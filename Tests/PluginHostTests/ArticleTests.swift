import PluginABI
import PluginHost
import Synchronization
import Testing

/// The examples of the articles do what the articles say.
@Suite struct ArticleTests {
    private struct HomeClient: ServiceClient {
        static let serviceName = "HomeService"
        static let minimumVersion: String? = "1.2.0"
        let service: ServiceHandle

        init(_ service: ServiceHandle) { self.service = service }

        func title(of key: String) throws(PluginError) -> String {
            try service.perform("fetchDetail", ["key": .string(key)])["title"]?.string ?? ""
        }
    }

    @Test func `Services are found by name and smallest version, and typed by the caller`() throws {
        let test = try TestHost.withSamples()
        let home = try test.host.service("HomeService", from: "1.0.0")
        #expect(try home.perform("fetchDetail", ["key": "lamp"])["title"]?.string == "Detail of lamp")
        #expect(try test.host.service(HomeClient.self).title(of: "lamp") == "Detail of lamp")
        #expect(try test.host.serviceInfo("HomeService").module == "ModuleA")
    }

    @Test func `Events reach subscribers of modules and of the program`() throws {
        let test = try TestHost([])
        try test.host.register(
            Manifest("Accounts", version: "1.0.0") {
                Subscribe {
                    Action("shop.sold", .context(), .optional("item", String.self)) { context, item in
                        context.log(.info, "\(item ?? "something") was sold")
                    }
                }
            })
        let heard = Heard()
        let subscription = test.host.on("shop.sold") { parameters in
            heard.items.withLock { $0.append(parameters["item"]?.string ?? "") }
        }
        let outcome = try test.host.post("shop.sold", ["item": "lamp"])
        #expect(outcome.delivered == 2 && outcome.failures.isEmpty)
        #expect(heard.items.withLock { $0 } == ["lamp"])
        #expect(test.log.contains { $0.message == "lamp was sold" && $0.module == "Accounts" })
        subscription.cancel()
    }

    @Test func `An interceptor changes parameters, and is gone when it is removed`() throws {
        let test = try TestHost.withSamples()
        let interceptor = test.host.intercept(.target("A")) { call, next in
            var call = call
            if call.action == "fetchDetail" { call.parameters["page"] = 7 }
            return try next(call)
        }
        #expect(try test.host.perform("A", "fetchDetail", ["key": "lamp"])["page"]?.int == 7)
        interceptor.remove()
        #expect(try test.host.perform("A", "fetchDetail", ["key": "lamp"])["page"]?.int == 1)
    }

    private final class Heard: Sendable {
        let items = Mutex<[String]>([])
    }
}
