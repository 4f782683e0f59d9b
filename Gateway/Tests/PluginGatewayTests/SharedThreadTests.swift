import Foundation
import GatewayThreads
import PluginABI
import PluginHost
import ServiceLifecycle
import Synchronization
import Testing

@testable import PluginGateway

@Suite struct SharedThreadTests {
    /// A module whose action replies at once, or hangs until a file exists.
    private var hangingModule: CModule {
        var module = CModule(name: "Lazy")
        let parameters: KeyValuePairs = ["file": "string"]
        module.targets = [
            .init(
                name: "Lazy",
                actions: [
                    .init(
                        name: "wait", manifest: "\"remote\": true, ", parameters: parameters,
                        body: """
                            char path[200] = {0};
                            memcpy(path, arguments[0].as.string, arguments[0].count < 190 ? arguments[0].count : 190);
                            if (path[0]) {
                                note(path, "x");
                                strcat(path, ".go");
                                for (int i = 0; i < 12000 && access(path, F_OK) != 0; i++) usleep(10000);
                            }
                            reply(call, "waited");
                            """),
                    .init(
                        name: "later", manifest: "\"remote\": true, \"async\": true, ", parameters: parameters,
                        body: "reply(call, \"later\");"),
                    .init(name: "inside", parameters: parameters, body: "reply(call, \"inside\");"),
                ])
        ]
        return module
    }

    @Test func `an action that hangs after many short calls keeps nothing else from running`() async throws {
        let gateway = try await TestGateway([hangingModule.build()] + TestGateway.samples)
        var pace: CallPace { gateway.gateway.countedActions.of("Lazy", "Lazy/wait", gateway.gateway).counted.pace }
        #expect(
            await becomesTrue {
                for _ in 0..<CallPace.required {
                    guard try await gateway.call("Lazy/wait", "{\"file\": \"\"}").text == "\"waited\"" else {
                        return false
                    }
                }
                return pace.areShort
            })
        // More than there are shared threads.
        let files = (0..<4 + 2 * ProcessInfo.processInfo.activeProcessorCount).map { "\(gateway.folder)/\($0)" }
        let calls = files.map { file in
            Task { try await gateway.call("Lazy/wait", "{\"file\": \"\(file)\"}", [("Timeout", "2")]) }
        }
        #expect(await becomesTrue { files.allSatisfy(FileManager.default.fileExists) })
        #expect(try await gateway.get("/healthz").status == 200)
        #expect(try await gateway.call("C/add", "{\"a\": 1}").text == "2")
        for call in calls { #expect(try await call.value.code == "deadlineExceeded") }
        #expect(!pace.areShort)
        #expect(gateway.gateway.admission.inFlight == files.count)
        for file in files { #expect(FileManager.default.createFile(atPath: "\(file).go", contents: nil)) }
        #expect(await becomesTrue { gateway.gateway.admission.inFlight == 0 })
        #expect(try await gateway.call("Lazy/wait", "{\"file\": \"\"}").text == "\"waited\"")
        try await gateway.end()
    }

    @Test func `only synchronous actions of modules that run in this process may share threads`() async throws {
        var isolated = hangingModule
        isolated.name = "Isolated"
        isolated.targets = [.init(name: "Isolated", actions: isolated.targets?[0].actions ?? [])]
        let gateway = try await TestGateway([hangingModule.build(), isolated.build()]) { _, host in
            host.isolation.modules = .named(["Isolated"])
            host.isolation.workerPath = "\(buildFolder)/pluginhost-gateway"
        }
        func may(_ action: String) -> Bool? {
            let (gateway, url) = (gateway.gateway, "\(gateway.gateway.scheme)://\(action)")
            let found = try? gateway.catalog.current.destination(of: url, .post, gateway)
            return found?.declaration?.mayShareThreads
        }
        #expect(await becomesTrue { may("Lazy/wait") == true })
        #expect(may("Lazy/later") == false)
        #expect(may("Lazy/inside") == nil)
        #expect(await becomesTrue { may("Isolated/wait") == false })
        try await gateway.end()
    }

    @Test func `replaced modules start anew, and nothing is kept of modules that have gone`() async throws {
        let gateway = try await TestGateway(TestGateway.samples)
        let (counted, admission) = (gateway.gateway.countedActions, gateway.gateway.admission)
        var module = hangingModule
        func isCalled() async throws -> Bool {
            try await gateway.call("\(module.name)/wait", "{\"file\": \"\"}").text == "\"waited\""
        }
        for name in ["One", "Two", "Three"] {
            module.name = name
            module.targets?[0].name = name
            try module.build(into: gateway.plugins, as: "\(name).so")
            try #require(await becomesTrue { try await isCalled() })
            if name != "Three" { try FileManager.default.removeItem(atPath: "\(gateway.plugins)/\(name).so") }
        }
        try #require(await becomesTrue { try await isCalled() && counted.count == 1 && admission.moduleCount == 1 })
        var pace: CallPace { counted.of("Three", "Three/wait", gateway.gateway).counted.pace }
        let old = pace
        old.exclude()
        module.version = "1.0.1"
        try module.build(into: gateway.plugins, as: "Three.so")
        #expect(
            await becomesTrue {
                for _ in 0..<CallPace.required { guard try await isCalled() else { return false } }
                return pace !== old && pace.areShort
            })
        try FileManager.default.removeItem(atPath: "\(gateway.plugins)/Three.so")
        #expect(
            await becomesTrue {
                let answer = try await gateway.call("C/add", "{\"a\": 1}").text
                return answer == "2" && counted.count == 1 && admission.moduleCount == 1
            })
        try await gateway.end()
    }

    @Test func `calls share threads after many short ones in a row, and no longer after long ones`() {
        let pace = CallPace()
        func add(_ count: Int, _ duration: Duration, isShared: Bool = false) {
            for _ in 0..<count { pace.add(duration, isShared: isShared) }
        }
        add(CallPace.required - 1, .microseconds(5))
        #expect(!pace.areShort)
        add(1, .microseconds(300))
        add(CallPace.required - 1, .microseconds(5))
        #expect(!pace.areShort)
        add(1, .microseconds(5))
        #expect(pace.areShort)
        // Other programs can delay a call now and then.
        add(10 * CallPace.required, .microseconds(300), isShared: true)
        add(1, .milliseconds(2), isShared: true)
        #expect(pace.areShort)
        add(1, .milliseconds(2), isShared: true)
        #expect(!pace.areShort)
        add(CallPace.required, .microseconds(5))
        #expect(pace.areShort)
        for end in [{ pace.exclude() }, { pace.add(.milliseconds(60), isShared: true) }] {
            end()
            add(50 * CallPace.required, .microseconds(5))
            add(1, .milliseconds(1))
            #expect(!pace.areShort)
            add(200 * CallPace.required, .microseconds(5))
            #expect(pace.areShort)
        }
    }

    @Test func `the tasks of a server run on the threads for requests`() async throws {
        final class Server: ServiceLifecycle.Service {
            let areTheirs = Mutex<[Bool]>([])

            func run() async throws {
                await withDiscardingTaskGroup { group in
                    group.addTask { self.areTheirs.withLock { $0.append(RequestThreads.process.isCurrent) } }
                }
            }
        }
        let (gateway, server) = (PluginGateway(PluginHost(HostConfiguration(folders: []))), Server())
        try await gateway.services(server)[1].run()
        #expect(server.areTheirs.withLock { $0 } == [true])
    }
}
