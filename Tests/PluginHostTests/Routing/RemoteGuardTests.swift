import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

/// The guard of remote calls: what it sees, what it can answer, and how often it is asked.
@Suite struct RemoteGuardTests {
    private let test: TestHost
    private var host: PluginHost { test.host }
    private let guarded = GuardRecord()

    init() throws {
        test = try TestHost(["ModuleA", "ModuleB"].map { built("lib\($0).so") })
        try test.host.register(
            Manifest("Account", version: "1.0.0") {
                Target("Account") {
                    Action("balance", .required("of", Int.self), .optional("unit", String.self, default: "euro")) {
                        "\($0) \($1)"
                    }.remote(requires: "login", "adult")
                    Action("later", .required("of", Int.self)) { (of) async in of }.remote(requires: "login")
                    Action("name") { "Account" }.remote()
                    Action("secret") { "secret" }
                }
                Route("app://money/:of", to: "Account/balance")
                Route("app://soon/:of", to: "Account/later")
            })
    }

    /// Opens a URL as a caller that cannot wait.
    private func openNow(_ url: String) throws -> Value { try host.open(url, origin: .remote) }

    private func code(_ url: String, _ parameters: Parameters = [:]) -> PluginError.Code? {
        do throws(PluginError) { try host.open(url, parameters, origin: .remote) } catch { return error.code }
        return nil
    }

    @Test func `The guard sees the parameters as the action would get them, and what the action demands`() throws {
        host.onRemoteCall { [guarded] in guarded.note($0, .pass) }
        #expect(try host.open("app://money/7", origin: .remote) == "7 euro")
        #expect(try host.open("app://money/8", ["unit": "dollar"], origin: .remote) == "8 dollar")
        #expect(try host.open("app://Account/balance?of=9.0", origin: .remote) == "9 euro")
        let calls = guarded.all
        #expect(
            calls.map(\.parameters) == [
                ["of": 7, "unit": "euro"], ["of": 8, "unit": "dollar"], ["of": 9, "unit": "euro"],
            ])
        #expect(calls.allSatisfy { $0.demands == ["login", "adult"] })
        #expect(calls.allSatisfy { $0.target == "Account" && $0.action == "balance" })
        #expect(calls.map(\.route) == ["app://money/:of", "app://money/:of", nil])
        #expect(try host.open("app://Account/name", origin: .remote) == "Account")
        #expect(guarded.all.last?.demands == [] && guarded.all.last?.parameters == [:])
    }

    @Test func `The guard is not asked about a call whose parameters are wrong`() throws {
        host.onRemoteCall { [guarded] in guarded.note($0, .pass) }
        #expect(code("app://money/seven") == .mistypedParameter)
        #expect(code("app://Account/balance") == .missingParameter)
        #expect(guarded.all.isEmpty)
    }

    @Test func `Without a guard, an action that demands something is refused, and canOpen agrees`() throws {
        #expect(code("app://money/7") == .refused && code("app://Account/name") == nil)
        #expect(!host.canOpen("app://money/7", origin: .remote) && host.canOpen("app://money/7"))
        #expect(try host.open("app://money/7") == "7 euro")
    }

    @Test func `The guard is asked once for each opening, in either form`() async throws {
        host.onRemoteCall { [guarded] in guarded.note($0, .pass) }
        _ = try await host.open("app://soon/1", origin: .remote)
        #expect(guarded.all.count == 1)
        host.onRemoteCall { [guarded] in
            guarded.note($0, .ask)
        } asking: { [guarded] in
            _ = guarded.note($0, .pass)
            return .pass
        }
        #expect(try await host.open("app://soon/2", origin: .remote) == 2)
        #expect(guarded.all.count == 3)
        #expect(host.canOpen("app://soon/3", origin: .remote) && guarded.all.count == 4)
    }

    @Test func `A login is shown, and then the same call continues`() async throws {
        let session = Mutex(false)
        let logins = Mutex<[RemoteCall]>([])
        host.onRemoteCall { call in
            call.demands.contains("login") && !session.withLock { $0 } ? .ask : .pass
        } asking: { [host] call in
            logins.withLock { $0.append(call) }
            // The guard may call the host itself, and take its time.
            _ = try await host.open("app://Account/name", origin: .remote)
            await Task.yield()
            session.withLock { $0 = true }
            return .pass
        }
        #expect(try await host.open("app://money/7", ["unit": "pound"], origin: .remote) == "7 pound")
        #expect(logins.withLock { $0.map(\.parameters) } == [["of": 7, "unit": "pound"]])
        // A user who has logged in is not asked again, even by a caller that cannot wait.
        #expect(try openNow("app://money/8") == "8 euro")
        #expect(logins.withLock { $0.count } == 1)
    }

    @Test func `An opening that cannot wait for the guard says so, and nothing is asked`() throws {
        host.onRemoteCall { _ in
            .ask
        } asking: { [guarded] in
            _ = guarded.note($0, .pass)
            return .pass
        }
        #expect(code("app://money/7") == .asynchronousGuard)
        #expect(host.canOpen("app://money/7", origin: .remote))
        #expect(guarded.all.isEmpty)
    }

    @Test func `The second form can refuse, redirect and fail`() async throws {
        func error(_ url: String) async -> PluginError? {
            await pluginError { try await self.host.open(url, origin: .remote) }
        }
        struct Odd: Error {}
        host.onRemoteCall { _ in
            .ask
        } asking: { call in
            switch call.parameters["of"] {
            case 1: return .refuse("Not you.")
            case 2: throw PluginError("noNetwork", "The account cannot be reached.")
            case 3: throw Odd()
            default: return .redirect("app://B/greet?name=Ada")
            }
        }
        let refused = await error("app://money/1")
        #expect(refused?.code == .refused && refused?.message == "Not you.")
        #expect(await error("app://money/2")?.code == "noNetwork")
        #expect(await error("app://money/3")?.code == .refused)
        #expect(try await host.open("app://money/4", origin: .remote) == "Hello, Ada!")
        // The guard can redirect a URL that leads nowhere.
        #expect(try await host.open("web://elsewhere/x", origin: .remote) == "Hello, Ada!")
    }

    @Test func `A guard that wants to be asked but has one form refuses, and canOpen agrees`() throws {
        host.onRemoteCall { _ in .ask }
        #expect(code("app://Account/name") == .refused && !host.canOpen("app://Account/name", origin: .remote))
    }

    @Test func `The timeout of the opening includes the guard, whose task is cancelled with it`() async throws {
        let cancelled = Mutex(false)
        host.onRemoteCall { _ in
            .ask
        } asking: { _ in
            do { try await Task.sleep(for: .seconds(600)) } catch { cancelled.withLock { $0 = true } }
            return .pass
        }
        let error = await #expect(throws: PluginError.self) {
            try await host.open("app://money/7", origin: .remote, timeout: .milliseconds(20))
        }
        #expect(error?.code == .deadlineExceeded)
        #expect(await becomesTrue { cancelled.withLock { $0 } })
    }

    @Test func `The guard is asked again if the URL leads elsewhere by the time the guard has passed it`() async throws
    {
        host.onRemoteCall { [guarded] in
            guarded.note($0, .ask)
        } asking: { [host, guarded] call in
            if guarded.all.count == 1 {
                try host.updateRoute("app://money/:of", to: "Account/later")
            }
            return .pass
        }
        #expect(try await host.open("app://money/7", origin: .remote) == 7)
        #expect(guarded.all.map(\.action) == ["balance", "later"])
    }

    @Test func `A page that waits for the guard has the parameters of its own URL`() async throws {
        let navigator = Navigator(host, presenter: RecordingPresenter())
        host.onRemoteCall { _ in
            .ask
        } asking: { call in
            call.url.hasSuffix("basket") ? .redirect("app://shop/article/apple?note=red") : .pass
        }
        let pear = try await navigator.open("app://shop/article/pear?note=ripe", by: .present, origin: .remote)
        #expect(pear.parameters == ["key": "pear", "note": "ripe"])
        let apple = try await navigator.open("app://basket", by: .present, origin: .remote)
        #expect(apple.parameters == ["key": "apple", "note": "red"])
    }
}

/// The calls that a guard was asked about.
private final class GuardRecord: Sendable {
    private let calls = Mutex<[RemoteCall]>([])

    var all: [RemoteCall] { calls.withLock { $0 } }

    func note(_ call: RemoteCall, _ decision: RemoteDecision) -> RemoteDecision {
        calls.withLock { $0.append(call) }
        return decision
    }
}
