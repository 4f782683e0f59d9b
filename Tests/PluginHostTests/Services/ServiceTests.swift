import Foundation
import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

/// Services, requested by name and minimum version, from any module.
@Suite(.timeLimit(.minutes(30))) struct ServiceTests {
    /// A module with services, each implemented by a target with the module's name, whose instances are counted.
    struct Offer {
        var name: String
        /// The services as JSON, without the target.
        var services: [String]
        var instance = "shared"
        /// Statements at the beginning of `make`.
        var make = ""

        var module: CModule {
            let services = services.map { "{\($0),\"target\":\"\(name)\"}" }.joined(separator: ",")
            return CModule(
                name: name, moreManifest: "\"services\":[\(services)],",
                code: """
                    static atomic_int made, alive;
                    static void *make(void *data, const plugin_call *call) {
                        (void)data, (void)call; \(make)
                        atomic_fetch_add(&alive, 1); return (void *)(intptr_t)(atomic_fetch_add(&made, 1) + 1);
                    }
                    static void destroy(void *data, void *instance) {
                        (void)data, (void)instance; atomic_fetch_sub(&alive, 1);
                    }
                    """,
                targets: [
                    .init(
                        name: name, manifest: "\"instance\":\"\(instance)\",",
                        actions: [
                            .init(name: "instance", body: "reply_int(call->token, (int64_t)(intptr_t)call->instance);"),
                            .init(
                                name: "later", manifest: "\"async\":true,",
                                body: "reply_int(call->token, (int64_t)(intptr_t)call->instance);"),
                        ]),
                    .init(
                        name: "\(name)Count",
                        actions: [
                            .init(name: "made", body: "reply_int(call->token, made);"),
                            .init(name: "alive", body: "reply_int(call->token, alive);"),
                        ]),
                ], makers: instance == "none" ? "" : "{{\"\(name)\", \(name.utf8.count)}, make, destroy, 0}")
        }
    }

    private func service(_ version: String, _ more: String = "") -> String {
        "\"name\":\"S\",\"version\":\"\(version)\"\(more)"
    }

    private func host(_ offers: Offer...) throws -> TestHost { try TestHost(offers.map { try $0.module.build() }) }

    /// The error of a request for a service.
    private func failure(_ host: PluginHost, _ name: String, from version: String? = nil) throws -> PluginError {
        try #require(#expect(throws: PluginError.self) { try host.serviceInfo(name, from: version) })
    }

    // MARK: The implementation that serves

    @Test func `The highest version serves, then the highest priority`() throws {
        let test = try host(
            Offer(name: "A", services: [service("1.9.0", ",\"priority\":9")]),
            Offer(name: "B", services: [service("1.10.0")]),
            Offer(name: "C", services: [service("1.10.0", ",\"priority\":1,\"summary\":\"x\"")]))
        let info = try test.host.serviceInfo("S")
        #expect(info.module == "C" && info.version == "1.10.0" && info.target == "C" && info.priority == 1)
        #expect(info.summary == "x" && !info.isSingleton)
        #expect(test.host.services.map(\.module) == ["C", "B", "A"])
        #expect(try test.host.serviceInfo("S", from: "1.10.0") == info)
    }

    @Test func `An error names the service, the available versions, and a similar name`() throws {
        let test = try host(
            Offer(name: "A", services: [service("1.2.0")]), Offer(name: "B", services: [service("1.0.0")]))
        let tooOld = try failure(test.host, "S", from: "2.0.0")
        #expect(tooOld.code == .unknownService)
        #expect(
            tooOld.message
                == "No module offers the service “S”, version 2.0.0 or higher. Available: 1.2.0 of A, 1.0.0 of B.")
        #expect(try failure(test.host, "s").message == "No module offers the service “s”. Did you mean “S”?")
        #expect(try failure(test.host, "S", from: "2").code == .invalidValue)
        #expect(throws: tooOld) { try test.host.service("S", from: "2.0.0") }
    }

    @Test func `No instance is made to find out what implements a service`() throws {
        let test = try host(Offer(name: "A", services: [service("1.0.0")]))
        _ = try test.host.serviceInfo("S")
        #expect(try test.host.perform("ACount", "made") == 0)
    }

    @Test func `A second module with the same name, version and priority of a service is refused as a whole`() throws {
        let test = try TestHost()
        let first = Offer(name: "A", services: [service("1.0.0")]).module
        let second = Offer(name: "B", services: [service("1.0.0+other")]).module
        let folder = try TemporaryFolder()
        try copyFile(first.build(), to: "\(test.plugins)/a.so")
        try test.start()
        try copyFile(second.build(), to: "\(folder.path)/b.so")
        rename("\(folder.path)/b.so", "\(test.plugins)/b.so")
        #expect(eventually { test.states == ["a.so": "active", "b.so": "failed"] })
        let error = try #require(test.status("b.so")?.error)
        #expect(error.code == .conflict)
        for word in ["A (", "B (", "a.so", "b.so", "S 1.0.0", "A keeps it"] {
            #expect(error.message.contains(word), "\(error.message)")
        }
        #expect(throws: PluginError.self) { try test.host.perform("BCount", "made") }
    }

    // MARK: Instances

    @Test func `A singleton is the target's one instance, however many callers request it at a time`() async throws {
        let test = try host(
            Offer(name: "A", services: [service("1.0.0", ",\"singleton\":true")], make: "usleep(20000);"))
        let host = test.host
        let numbers = try await onThreads(8) { _ in try host.service("S").perform("instance") }
        #expect(Set(numbers) == [1])
        #expect(try host.perform("A", "instance") == 1)
        #expect(try await host.service("S").call("later") == 1)
        #expect(try host.perform("ACount", "made") == 1)
    }

    @Test func `Each handle of any other service has its own instance, which is destroyed with the handle`()
        async throws
    {
        let test = try host(Offer(name: "A", services: [service("1.0.0")]))
        let host = test.host
        let shared = try host.perform("A", "instance")
        var handle: ServiceHandle? = try host.service("S")
        let own = try handle?.perform("instance")
        #expect(own != shared)
        #expect(try handle?.perform("instance") == own)
        #expect(try await handle?.call("later") == own)
        #expect(try host.service("S").perform("instance") != own)
        #expect(handle?.module == "A" && handle?.version == "1.0.0")
        #expect(try host.perform("ACount", "alive") == 2)
        handle = nil
        #expect(try host.perform("ACount", "alive") == 1)
        #expect(try host.perform("A", "instance") == shared)
    }

    @Test func `Handles that are requested on many threads have their own instances`() async throws {
        let test = try host(Offer(name: "A", services: [service("1.0.0")], instance: "perCall"))
        let host = test.host
        let numbers = try await onThreads(8) { _ in
            let handle = try host.service("S")
            let first = try handle.perform("instance")
            for _ in 0..<100 { guard try handle.perform("instance") == first else { return Value.null } }
            return first
        }
        #expect(Set(numbers).count == 8 && !numbers.contains(.null))
        #expect(try host.perform("ACount", "alive") == 0)
    }

    @Test func `The error of the factory is the error of the request`() throws {
        let test = try host(
            Offer(
                name: "A", services: [service("1.0.0")],
                make: "plugin_fail(host, call, \"noMoney\", \"Too expensive.\"); return 0;"))
        #expect(throws: PluginError("noMoney", "Too expensive.", source: "A")) { try test.host.service("S") }
        #expect(test.staleReplies == 0)
    }

    @Test func `An unknown action of a service is an error, with and without an instance`() throws {
        for more in ["", ",\"singleton\":true"] {
            let test = try host(Offer(name: "A", services: [service("1.0.0", more)]))
            let handle = try test.host.service("S")
            let error = try #require(#expect(throws: PluginError.self) { try handle.perform("instanc") })
            #expect(error.code == .unknownAction && error.message.contains("Did you mean “instance”?"))
        }
    }

    @Test func `An unknown action of a service never goes to a notFound, with and without an instance`() throws {
        let test = try TestHost([])
        test.host.onMissingTarget { _, _, _, _ in "missing" }
        try test.host.register(
            Manifest("N", version: "1.0.0") {
                Target("N", make: { 5 }) {
                    Action(
                        "notFound", .instance(), .required("action", String.self), .required("parameters", Value.self)
                    ) { number, action, parameters -> Value in [.int(number), .string(action), parameters] }
                }
                Service("Own", version: "1.0.0", target: "N")
                Service("Shared", version: "1.0.0", target: "N", singleton: true)
            })
        #expect(try test.host.perform("N", "x") == [5, "x", [:]])
        for name in ["Own", "Shared"] {
            let error = #expect(throws: PluginError.self) { try test.host.service(name).perform("x", ["y": 1]) }
            #expect(error?.code == .unknownAction && error?.message.contains("The service \(name)") == true)
        }
    }

    @Test(arguments: [(true, PluginError.Code.circularWait), (false, .recursionLimit)])
    func `Services whose factories request each other are an error`(isSingleton: Bool, code: PluginError.Code) throws {
        let test = try TestHost([])
        let host = test.host
        for (name, other) in [("First", "Second"), ("Second", "First")] {
            try host.register(
                Manifest(name, version: "1.0.0") {
                    Target(name, make: { [weak host] in try host?.service(other).perform("number").int ?? 0 }) {
                        Action("number", .instance()) { number in number }
                    }
                    Service(name, version: "1.0.0", target: name, singleton: isSingleton)
                })
        }
        for name in ["First", "Second"] {
            let error = #expect(throws: PluginError.self) { try host.service(name).perform("number") }
            #expect(error?.code == code)
        }
    }

    // MARK: Changes

    @Test func `A handle of a singleton follows the newest version, and any other keeps its own`() throws {
        let test = try TestHost()
        let old = Offer(
            name: "A", services: [service("1.0.0", ",\"singleton\":true"), "\"name\":\"O\",\"version\":\"1.0.0\""])
        let new = Offer(
            name: "B", services: [service("2.0.0", ",\"singleton\":true"), "\"name\":\"O\",\"version\":\"2.0.0\""])
        try copyFile(old.module.build(), to: "\(test.plugins)/a.so")
        try test.start()
        let (shared, own) = (try test.host.service("S"), try test.host.service("O"))
        #expect(try own.perform("instance") == 1 && shared.perform("instance") == 2)
        let built = try new.module.build()
        try copyFile(built, to: "\(test.folder.path)/b.so")
        rename("\(test.folder.path)/b.so", "\(test.plugins)/b.so")
        #expect(eventually { (try? test.host.serviceInfo("S").module) == "B" })
        try shared.perform("instance")
        #expect(try test.host.perform("BCount", "made") == 1)
        #expect(try own.perform("instance") == 1 && own.version == "1.0.0")
    }

    @Test func `Waiting ends when the service is added, but not for an older version`() async throws {
        let test = try TestHost()
        try test.start()
        let host = test.host
        async let waited = host.waitForService("S", from: "2.0.0", timeout: .seconds(600))
        for (file, offer) in [
            ("a.so", Offer(name: "A", services: [service("1.0.0")])),
            ("b.so", Offer(name: "B", services: [service("2.1.0")])),
        ] {
            try copyFile(offer.module.build(), to: "\(test.folder.path)/\(file)")
            rename("\(test.folder.path)/\(file)", "\(test.plugins)/\(file)")
        }
        #expect(try await waited.module == "B")
        #expect(try await host.waitForService("S", timeout: .seconds(600)).version == "2.1.0")
    }

    @Test func `Waiting ends at the deadline, with the task, and with the host`() async throws {
        let test = try TestHost([])
        let host = test.host
        let late = await #expect(throws: PluginError.self) {
            try await host.waitForService("S", from: "1.0.0", timeout: .milliseconds(20))
        }
        #expect(late?.code == .deadlineExceeded && late?.message.contains("“S”, version 1.0.0 or higher") == true)
        let task = Task { try await host.waitForService("S", timeout: .seconds(600)) }
        task.cancel()
        let cancelled = await #expect(throws: PluginError.self) { try await task.value }
        #expect(cancelled?.code == .cancelled)
        let waiting = Task { try await host.waitForService("S", timeout: .seconds(600)) }
        try await Task.sleep(for: .milliseconds(50))
        host.shutdown()
        let stopped = await #expect(throws: PluginError.self) { try await waiting.value }
        #expect(stopped?.code == .hostStopped)
        #expect(test.staleReplies == 0)
    }

    @Test func `All waiting callers get the service`() async throws {
        let test = try TestHost()
        try test.start()
        let host = test.host
        let module = try Offer(name: "A", services: [service("1.0.0")]).module.build()
        let names = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<100 {
                group.addTask { try await host.waitForService("S", timeout: .seconds(600)).module }
            }
            try copyFile(module, to: "\(test.folder.path)/a.so")
            rename("\(test.folder.path)/a.so", "\(test.plugins)/a.so")
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(names == Array(repeating: "A", count: 100))
    }

    // MARK: From modules

    @Test func `A module uses a service through its own type`() throws {
        let test = try TestHost.withSamples()
        #expect(try test.host.perform("B", "advertise", ["key": "lamp"]) == "Look: Detail of lamp!")
        #expect(try test.host.serviceInfo("HomeService", from: "1.0.0").module == "ModuleA")
    }

    @Test func `A module in C reaches services by their address and through the extension`() async throws {
        let user = CModule(
            name: "User",
            code: """
                static const plugin_services *services(void) {
                    return host->get_extension(host, PLUGIN_STRING(PLUGIN_SERVICES_EXTENSION));
                }
                static plugin_object kept;
                static void keep(void *data, const plugin_value *value, const plugin_error *error) {
                    if (error) { pass_on(data, value, error); return; }
                    const plugin_value *object = plugin_map_find(value, "object");
                    if (object) host->object_retain(host, kept = object->as.object);
                    pass_on(data, value, error);
                }
                """,
            targets: [
                .init(
                    name: "User",
                    actions: [
                        .init(
                            name: "use", parameters: ["version": "string"],
                            body: """
                                plugin_request request = ask("S", "instance");
                                request.address = PLUGIN_ADDRESS_SERVICE;
                                request.version = plugin_string_make(arguments[0].as.string, arguments[0].count);
                                host->perform(host, call->token, &request, pass_on, (void *)call->token);
                                """),
                        .init(
                            name: "short",
                            body: """
                                plugin_request request = ask("S", "instance");
                                request.address = PLUGIN_ADDRESS_SERVICE;
                                request.size = 95; request.version = plugin_string_make((const char *)1, 7);
                                host->perform(host, call->token, &request, pass_on, (void *)call->token);
                                """),
                        .init(
                            name: "info",
                            body: "services()->info(host, text(\"S\"), text(0), pass_on, (void *)call->token);"),
                        .init(
                            name: "request",
                            body:
                                "services()->request(host, call->token, text(\"S\"), text(0), keep, (void *)call->token);"
                        ),
                        .init(
                            name: "useKept",
                            body: """
                                plugin_request request = ask(0, "instance");
                                request.address = PLUGIN_ADDRESS_OBJECT; request.object = kept;
                                host->perform(host, call->token, &request, pass_on, (void *)call->token);
                                """),
                        .init(name: "drop", body: "reply_int(call->token, host->object_release(host, kept));"),
                        .init(
                            name: "wait", manifest: "\"async\":true,",
                            body: """
                                services()->wait(host, call->token, text("S"), text("9.0.0"), 20000000, pass_on,
                                                 (void *)call->token);
                                """),
                    ])
            ])
        let test = try TestHost([user.build(), Offer(name: "A", services: [service("1.0.0")]).module.build()])
        let host = test.host
        #expect(try host.perform("User", "use", ["1.0.0"]) == 1)
        #expect(try host.perform("User", "use", ["1.0.0"]) == 2)
        #expect(try test.failure("User", "short").code == .invalidValue)
        #expect(try host.perform("ACount", "alive") == 0)
        #expect(try test.failure("User", "use", ["1.0.1"]).code == .unknownService)
        #expect(try test.failure("User", "use", ["x"]).code == .invalidValue)
        #expect(try host.perform("User", "info")["module"] == "A")
        #expect(try host.perform("User", "request")["version"] == "1.0.0")
        #expect(try host.perform("User", "useKept") == 3)
        #expect(try host.perform("User", "useKept") == 3)
        #expect(try host.perform("ACount", "alive") == 1)
        #expect(try host.perform("User", "drop") == 0)
        #expect(try host.perform("ACount", "alive") == 0)
        let late = await #expect(throws: PluginError.self) { try await host.call("User", "wait") }
        #expect(late?.code == .deadlineExceeded)
    }
}
