import Foundation
import PluginABI
import PluginGateway
import PluginHost
import Testing
import Tracing

@testable import RemoteModules

/// Hosts that come, change, go, and mount each other.
@Suite struct HostTests {
    private func file(_ gateway: TestGateway) -> String { "\(gateway.plugins)/0.so" }

    private func replace(_ gateway: TestGateway, _ module: CModule) throws {
        try module.build(into: gateway.plugins, as: "0.so")
    }

    @Test func `a host starts without the other one, and serves its targets as soon as that one runs`() async throws {
        let lines = Lines()
        let first = try await TestGateway([])
        let port = first.port
        try await first.end()
        let mount = try TestMount("http://127.0.0.1:\(port)", lines: lines)
        #expect(await becomesTrue { mount.remote.status.problem != nil })
        let error = await mount.error("greet", ["name": "x"])
        #expect(error?.code == .moduleUnavailable)
        #expect(error?.message.contains("cannot be reached") == true, "\(error?.message ?? "")")
        #expect(mount.remote.status.targets.first?.problem?.contains("cannot be reached") == true)
        await #expect(throws: PluginError.self) { try await mount.host.call("B", "later") }

        let gateway = try await TestGateway([bModule().build()], port: port)
        #expect(await mount.isServed())
        #expect(try await mount.perform("greet", ["name": "x"]) == "x")
        #expect(mount.host.modules.map(\.name) == ["remote.B"])
        #expect(mount.remote.status.targets.first?.module == "ModB")
        #expect(mount.remote.status.problem == nil)
        #expect(lines.all.count { $0.message.contains("cannot be reached") } <= 2)
        try await mount.end()
        #expect(mount.host.modules.isEmpty)
        try await gateway.end()
    }

    @Test func `a target that is offered again says why it cannot be called before it has been reached`() async throws {
        let gone = try await TestGateway([])
        try await gone.end()
        for isReexported in [true, false] {
            let middle = try await TestGateway([])
            let mount = try TestMount("http://127.0.0.1:\(gone.port)", in: middle.gateway.host) {
                $0.isReexported = isReexported
            }
            #expect(await becomesTrue { mount.remote.status.problem != nil })
            let answer = try await middle.call("B/greet", "{\"name\": \"x\"}")
            #expect(answer.code == (isReexported ? "moduleUnavailable" : "noRoute"), "\(answer.text)")
            #expect(answer.status == (isReexported ? 503 : 404))
            #expect(try await middle.get("/modules.json").text == "{\"modules\":[]}")
            // No metric contains the names of actions that do not exist.
            #expect(try await !middle.get("/metrics").text.contains("greet"))
            try await mount.end()
            try await middle.end()
        }
    }

    @Test func `changes of the declarations replace the module, and no call fails meanwhile`() async throws {
        let gateway = try await TestGateway([bModule().build()])
        let mount = try await TestMount(of: gateway)
        let calling = Task {
            var calls = 0
            while !Task.isCancelled {
                guard try await mount.perform("greet", ["name": "x"]) == "x" else { return -1 }
                calls += 1
            }
            return calls
        }
        #expect(await mount.error("added")?.code == .unknownAction)
        let added = (
            declaration:
                #"{"name": "added", "remote": true, "parameters": [{"name": "n", "type": "int", "default": 3}]}"#,
            name: "added", body: "reply_value(call->token, arguments[0]);"
        )
        try replace(gateway, bModule(version: "1.1.0", [added]))
        #expect(await becomesTrue { mount.remote.status.targets[0].version == "1.1.0" })
        #expect(try await mount.perform("added") == 3)
        #expect(mount.host.modules.map(\.version) == ["1.1.0"])
        calling.cancel()
        #expect(try await calling.value > 0)
        try await mount.end()
        try await gateway.end()
    }

    @Test func `a target that vanishes is unavailable, with the reason, and served again when it returns`() async throws
    {
        let gateway = try await TestGateway([bModule().build()])
        let mount = try await TestMount(of: gateway)
        try FileManager.default.removeItem(atPath: file(gateway))
        #expect(await becomesTrue { mount.remote.status.targets[0].problem != nil })
        let error = await mount.error("greet", ["name": "x"])
        #expect(error?.code == .moduleUnavailable)
        #expect(error?.message.contains("offers no remote actions of that name") == true, "\(error?.message ?? "")")
        try replace(gateway, bModule(version: "2.0.0"))
        #expect(await mount.isServed())
        #expect(try await mount.perform("greet", ["name": "x"]) == "x")
        // A target that is not mounted is unknown.
        #expect(await mount.error("answer", target: "Good")?.code == .unknownTarget)
        try await mount.end()
        try await gateway.end()
    }

    @Test func `declarations that cannot be used are refused with the reason`() async throws {
        func offers(_ action: String, more: String = "") -> String {
            #"{"modules": [{"name": "M", "version": "1.0.0", \#(more)"targets": [{"name": "B", "actions": [\#(action)]}]}]}"#
        }
        for (text, reason) in [
            (offers(#"{"name": "a b"}"#), "has no valid name"), (offers("7"), "has no valid name"),
            (offers(""), "0 actions"),
            (offers(#"{"name": "x", "parameters": [{"name": "p", "type": "int5"}]}"#), "refused"),
            (offers(#"{"name": "x"}, {"name": "x"}"#), "refused"),
            (offers(#"{"name": "x"}"#, more: #""values": [7], "#), "refused"),
        ] {
            let balancer = try FakeBalancer(offers: text) { _, _ in .last("") }
            let mount = try TestMount(balancer.url)
            #expect(
                await becomesTrue { mount.remote.status.targets[0].problem?.contains(reason) == true },
                "\(text): \(mount.remote.status.targets[0].problem ?? "")")
            #expect(await mount.error("x")?.code == .moduleUnavailable)
            // Valid declarations replace them.
            balancer.setOffers(FakeBalancer.offers)
            #expect(await mount.isServed())
            try await mount.end()
            balancer.end()
        }
        for text in [
            "", "[]", "{}", #"{"modules": {}}"#, "{\"modules\": [", String(repeating: " ", count: 100_000) + "{}",
        ] {
            let balancer = try FakeBalancer(offers: text) { _, _ in .last("") }
            let mount = try TestMount(balancer.url) { $0.descriptionLimit = 50_000 }
            #expect(await becomesTrue { mount.remote.status.problem != nil })
            #expect(await mount.error("x")?.code == .moduleUnavailable)
            try await mount.end()
            balancer.end()
        }
    }

    @Test func `answers of hosts that differ, which alternate, do not replace the module again and again`() async throws
    {
        let other = FakeBalancer.offers.replacing("1.0.0", with: "9.0.0")
        let balancer = try FakeBalancer { _, _ in .text(FakeBalancer.ok("1")) }
        let mount = try TestMount(balancer.url)
        #expect(await mount.isServed())
        balancer.alternate(FakeBalancer.offers, other)
        let asked = balancer.questions
        #expect(await becomesTrue { balancer.questions > asked + 8 })
        #expect(mount.remote.status.targets[0].version == "1.0.0")
        balancer.setOffers(other)
        #expect(await becomesTrue { mount.remote.status.targets[0].version == "9.0.0" })
        try await mount.end()
        balancer.end()
    }

    @Test func `a target that changes often is replaced only now and then`() async throws {
        let balancer = try FakeBalancer { _, _ in .text(FakeBalancer.ok("1")) }
        func offer(_ version: Int) {
            balancer.setOffers(FakeBalancer.offers.replacing("1.0.0", with: "\(version).0.0"))
        }
        func isServed(_ version: Int, by mount: TestMount) async -> Bool {
            await becomesTrue { mount.remote.status.targets[0].version == "\(version).0.0" }
        }
        offer(1)
        let mount = try TestMount(balancer.url) {
            ($0.interval, $0.replacementPause) = (.milliseconds(10), .seconds(6000))
        }
        for version in 1...8 {
            offer(version)
            #expect(await isServed(version, by: mount))
        }
        offer(9)
        let asked = balancer.questions
        #expect(await becomesTrue { balancer.questions > asked + 8 })
        #expect(mount.remote.status.targets[0].version == "8.0.0")
        #expect(await mount.error("once") == nil)
        try await mount.end()
        // After the pause, the last change takes effect.
        let other = try TestMount(balancer.url) {
            ($0.interval, $0.replacementPause) = (.milliseconds(10), .milliseconds(300))
        }
        for version in 1...12 {
            offer(version)
            #expect(await isServed(version, by: other))
        }
        try await other.end()
        balancer.end()
    }

    @Test func `a host that vanishes in the middle of a call leaves its effect unknown`() async throws {
        let folder = try makeFolder()
        let gateway = try await TestGateway([bModule().build()]) { configuration, _ in
            configuration.drainTimeout = .milliseconds(10)
        }
        let mount = try await TestMount(of: gateway)
        async let sleeping = mount.error("sleep", ["file": "\(folder)/a"])
        #expect(await becomesTrue { FileManager.default.fileExists(atPath: "\(folder)/a") })
        // The gateway ends, and its host waits for the action.
        async let ending: Void = gateway.end()
        let error = await sleeping
        #expect(error?.message.contains("unknown") == true, "\(error?.message ?? "")")
        #expect(["hostStopping", "moduleUnavailable"].contains(error?.code.rawValue ?? ""))
        #expect(mount.remote.status.sent == 1)
        _ = FileManager.default.createFile(atPath: "\(folder)/a.go", contents: nil)
        try await ending
        try await mount.end()
        #expect(FileManager.default.contents(atPath: "\(folder)/a")?.count == 1)
    }

    @Test func `a cancelled call is cancelled at the other host`() async throws {
        let gateway = try await TestGateway([bModule().build()])
        let mount = try await TestMount(of: gateway)
        let folder = try makeFolder()
        let task = Task {
            try await mount.host.call("B", "wait", ["file": .string("\(folder)/a")], timeout: .seconds(120))
        }
        #expect(await becomesTrue { FileManager.default.fileExists(atPath: "\(folder)/a") })
        task.cancel()
        let error = await #expect(throws: PluginError.self) { try await task.value }
        #expect(error?.code == .cancelled)
        #expect(await becomesTrue { FileManager.default.fileExists(atPath: "\(folder)/a.cancelled") })
        #expect(await becomesTrue { mount.remote.status.callsInFlight == 0 })
        // A call whose deadline passes is cancelled, too.
        let late = await #expect(throws: PluginError.self) {
            try await mount.host.call("B", "wait", ["file": .string("\(folder)/b")], timeout: .seconds(1))
        }
        #expect(late?.code == .deadlineExceeded)
        #expect(await becomesTrue { mount.remote.status.callsInFlight == 0 })
        try await mount.end()
        try await gateway.end()
    }

    // MARK: Access

    @Test func `the token is read from a file, and again when that changes`() async throws {
        let folder = try makeFolder()
        func write(_ text: String, to name: String) throws {
            try text.write(toFile: "\(folder)/\(name).new", atomically: false, encoding: .utf8)
            chmod("\(folder)/\(name).new", 0o600)
            rename("\(folder)/\(name).new", "\(folder)/\(name)")
        }
        try write("shop 0123456789abcdef0123\n", to: "theirs")
        try write("# for the shop\nown wrongwrongwrongwrong\n", to: "own")
        let tokens = try BearerTokens(file: "\(folder)/theirs")
        let gateway = try await TestGateway([bModule().build()]) { configuration, _ in
            configuration.access = .tokens(tokens)
        }
        let mount = try TestMount("http://127.0.0.1:\(gateway.port)") { $0.tokenFile = "\(folder)/own" }
        #expect(await becomesTrue { mount.remote.status.problem?.contains("“\(folder)/own” is not accepted") == true })
        #expect(await mount.error("greet", ["name": "x"])?.message.contains("is not accepted") == true)
        try write("own 0123456789abcdef0123\n", to: "own")
        #expect(await mount.isServed())
        #expect(try await mount.perform("greet", ["name": "x"]) == "x")
        try FileManager.default.removeItem(atPath: "\(folder)/own")
        #expect(await becomesTrue { await mount.error("greet", ["name": "x"])?.code == "unauthorized" })
        try await mount.end()
        try await gateway.end()
    }

    @Test func `settings that cannot be used are refused`() async throws {
        let folder = try makeFolder()
        _ = FileManager.default.createFile(atPath: "\(folder)/open", contents: Data("0123456789abcdef".utf8))
        chmod("\(folder)/open", 0o644)
        let host = PluginHost(HostConfiguration(folders: []))
        func code(
            _ url: String, _ targets: [String] = ["B"], _ configure: (inout RemoteConfiguration) -> Void = { _ in }
        ) -> PluginError.Code? {
            var configuration = RemoteConfiguration()
            configure(&configuration)
            do throws(PluginError) {
                _ = try RemoteModules(of: url, targets: targets, in: host, configuration)
                return nil
            } catch {
                return error.code
            }
        }
        for url in [
            "", "balancer", "ftp://x", "https://", "https://:1", "https://a@b", "https://x/?a=1", "https://x#y",
            "https://x/../y", "https://x y", "https://x/" + String(repeating: "a", count: 3000), "https://x/%41",
        ] { #expect(code(url) == .invalidConfiguration, "\(url)") }
        #expect(code("https://x", []) == .invalidConfiguration)
        #expect(code("https://x", ["a/b"]) == .invalidConfiguration)
        #expect(code("https://x", ["B", "B"]) == .invalidConfiguration)
        #expect(code("https://x") { $0.modulePrefix = "7" } == .invalidConfiguration)
        #expect(code("https://x") { $0.tokenFile = "\(folder)/absent" } == .invalidConfiguration)
        #expect(code("https://x") { $0.tokenFile = "\(folder)/open" } == .invalidConfiguration)
        for (link, file) in [("linked", "open"), ("token", "secret")] {
            try FileManager.default.createSymbolicLink(atPath: "\(folder)/\(link)", withDestinationPath: file)
        }
        #expect(code("https://x") { $0.tokenFile = "\(folder)/linked" } == .invalidConfiguration)
        try "0123456789abcdef".write(toFile: "\(folder)/secret", atomically: false, encoding: .utf8)
        chmod("\(folder)/secret", 0o600)
        try host.register(Manifest("Own", version: "1.0.0") { Target("Mine") { Action("x") { 1 } } })
        #expect(code("https://x", ["Other", "Mine"]) == .conflict)
        // Nothing remains of a mount that was refused.
        #expect(host.modules.map(\.name) == ["Own"])
        // A link is followed.
        #expect(code("https://x") { $0.tokenFile = "\(folder)/token" } == nil)
        #expect(code("https://x", ["Other"]) == nil)
        host.shutdown()
    }
}
