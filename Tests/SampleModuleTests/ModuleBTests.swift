import PluginTestKit
import Synchronization
import Testing

/// The asynchronous module, which keeps callbacks and uses a service of any module that offers it.
@Suite struct ModuleBTests {
    private let home = Manifest("Home", version: "1.0.0") {
        Target("Home") {
            Action("fetchDetail", .required("key", String.self), .optional("page", Int.self)) { key, _ in
                ["title": .string("A very nice \(key)"), "page": 1] as Value
            }
        }
        Service("HomeService", version: "1.3.0", target: "Home")
    }

    @Test func `A slow action replies later without blocking, and cannot be performed synchronously`() async throws {
        let bench = try await TestBench(.product("ModuleB"))
        #expect(try await bench.host.call("B", "slowly", ["text": "stressed"]) == "desserts")
        let error = #expect(throws: PluginError.self) { try bench.host.perform("B", "slowly", ["text": "stressed"]) }
        #expect(error?.code == .asynchronousAction)
    }

    @Test func `A caller that cannot wait gets an error at its deadline`() async throws {
        let bench = try await TestBench(.product("ModuleB"))
        let error = await #expect(throws: PluginError.self) {
            try await bench.host.call(
                "B", "slowly", ["text": "stressed", "milliseconds": 3_600_000], timeout: .milliseconds(1))
        }
        #expect(error?.code == .deadlineExceeded)
        // The action was notified, so that nothing keeps running for an hour.
        let report = await bench.finish()
        #expect(report.isClean, "\(report)")
    }

    @Test func `The module advertises with whatever implements HomeService`() async throws {
        let bench = try await TestBench(.product("ModuleB"), peers: .fake(home))
        #expect(try bench.host.perform("B", "advertise", ["key": "lamp"]) == "Look: A very nice lamp!")
        try bench.remove("Home")
        let error = #expect(throws: PluginError.self) { try bench.host.perform("B", "advertise", ["key": "lamp"]) }
        #expect(error?.code == .unknownService)
    }

    @Test func `A remembered callback is called once, and then released`() async throws {
        let bench = try await TestBench(.product("ModuleB"))
        let heard = Heard()
        try bench.host.perform("B", "remember", [.object(bench.host.callback(heard.hear).object)])
        #expect(try await bench.host.call("B", "callBack", ["text": "hello"]) == 1)
        #expect(try await bench.host.call("B", "callBack", ["text": "again"]) == 0)
        #expect(heard.texts.withLock { $0 } == ["hello"])
        let report = await bench.finish()
        #expect(report.isClean, "\(report)")
    }

    @Test func `The module notes what is sold`() async throws {
        let bench = try await TestBench(.product("ModuleB"))
        #expect(try await bench.host.post("shop.sold", ["item": "pear"]).delivered == 1)
        #expect(bench.log.last?.message == "Sold: pear")
    }

    private final class Heard: Sendable {
        let texts = Mutex<[String]>([])

        @Sendable func hear(_ arguments: [Value]) throws -> Value {
            texts.withLock { $0.append(arguments.first?.string ?? "") }
            return .null
        }
    }
}
