import Foundation
import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

/// Restarts of isolated modules: the pauses between them, and their limit.
@Suite struct RestartTests {
    private func host(_ pauses: [Duration], _ module: CModule = crashing) throws -> TestHost {
        let host = try TestHost { configuration, _ in
            configuration.isolation.modules = .all
            configuration.isolation.restartPauses = pauses
        }
        try module.build(into: host.plugins, as: "bad.so")
        try host.start()
        return host
    }

    @Test func `After a pause the module serves again; until then its calls fail`() throws {
        let host = try host([.milliseconds(300)])
        #expect(host.code("Bad", "abort") == .moduleCrashed)
        #expect(host.failure("Bad")?.code == .moduleCrashed)
        #expect(eventually { host.answer("Bad") == "yes" })
        #expect(host.changes.contains { if case .crashed = $0 { true } else { false } })
        #expect(eventually { host.changes.contains { if case .restarted = $0 { true } else { false } } })
        #expect(host.log.contains { $0.module == "Bad" && $0.level == .error && $0.message.contains("signal 6") })
    }

    @Test func `A module that crashes too often has failed until its file changes`() throws {
        let host = try host([.zero, .zero])
        for _ in 0..<2 {
            #expect(host.code("Bad", "abort") == .moduleCrashed)
            #expect(eventually { host.answer("Bad") == "yes" })
        }
        #expect(host.code("Bad", "abort") == .moduleCrashed)
        #expect(eventually { host.status("bad.so")?.state == .failed })
        #expect(host.status("bad.so")?.error?.code == .moduleCrashed)
        #expect(host.failure("Bad")?.code == .moduleUnavailable)
        var next = crashing
        next.version = "1.0.1"
        try next.build(into: host.plugins, as: "bad.so")
        #expect(eventually { host.answer("Bad") == "yes" })
    }

    @Test func `The removal of a module that is not started again has its crash as the reason`() throws {
        let host = try host([])
        #expect(host.code("Bad", "abort") == .moduleCrashed)
        var reason: String? {
            host.changes.lazy.compactMap { if case .removed(_, let reason) = $0 { reason } else { nil } }.first
        }
        #expect(eventually { reason != nil })
        #expect(reason?.contains("Bad crashed. ") == true, "\(reason ?? "")")
        #expect(reason?.hasSuffix(" It is not started again until its file changes.") == true, "\(reason ?? "")")
    }

    @Test func `A pause lasts although other modules change, but not if a restart is requested`() throws {
        let host = try host([.seconds(600)])
        #expect(host.code("Bad", "abort") == .moduleCrashed)
        #expect(try host.waitForChanges())
        #expect(host.failure("Bad")?.code == .moduleCrashed)
        #expect(host.status("bad.so")?.restarts == 0)
        #expect(host.status("bad.so")?.note?.contains("crashed") == true)
        try host.host.restart("Bad")
        #expect(host.answer("Bad") == "yes")
    }

    /// A module that aborts in `activate` while a file exists.
    private func dependent(on file: String) -> CModule {
        CModule(
            name: "Bad", actions: crashing.actions, activate: "if (access(\"\(file)\", F_OK) == 0) abort();")
    }

    @Test func `A module that crashes while it is started again is tried again after the next pause`() throws {
        let folder = try TemporaryFolder()
        let file = "\(folder.path)/down"
        let host = try host(
            [.zero] + Array(repeating: .milliseconds(50), count: 10_000), dependent(on: file))
        #expect(FileManager.default.createFile(atPath: file, contents: nil))
        #expect(host.code("Bad", "abort") == .moduleCrashed)
        #expect(eventually { host.messages.contains { $0.contains("could not be started again") } })
        #expect(host.failure("Bad")?.code == .moduleCrashed)
        try FileManager.default.removeItem(atPath: file)
        #expect(eventually { host.answer("Bad") == "yes" })
    }

    @Test func `A restart on request that fails is an error`() throws {
        let folder = try TemporaryFolder()
        let file = "\(folder.path)/down"
        let host = try host([.seconds(600)], dependent(on: file))
        #expect(host.code("Bad", "abort") == .moduleCrashed)
        #expect(FileManager.default.createFile(atPath: file, contents: nil))
        #expect(throws: PluginError.self) { try host.host.restart("Bad") }
        try FileManager.default.removeItem(atPath: file)
        try host.host.restart("Bad")
        #expect(host.answer("Bad") == "yes")
    }

    @Test func `A module that crashes while others are started does not serve`() throws {
        let host = try TestHost { configuration, _ in
            configuration.watches = false
            configuration.isolation.modules = .all
            configuration.isolation.restartPauses = []
        }
        let dying = "static void *die(void *data) { (void)data; usleep(100000); abort(); }"
        try CModule(name: "Bad", code: dying, activate: "start(die, NULL);").build(into: host.plugins, as: "bad.so")
        try CModule(name: "Slow", hooks: ["init": "usleep(500000);"]).build(into: host.plugins, as: "slow.so")
        try host.start()
        #expect(eventually { host.status("bad.so")?.state == .failed })
        #expect(host.answer("Slow") == "yes")
    }

    @Test func `A restart on request makes a new process and keeps the state`() throws {
        let host = try host(
            [.zero],
            CModule(
                name: "Bad",
                actions: [("add", "reply_int(call->token, ++sum);"), ("process", "reply_int(call->token, getpid());")],
                manifest: """
                    {"name": "Bad", "version": "1.0.0", "hooks": [{"name": "suspend"}, {"name": "resume"}],
                     "targets": [{"name": "Bad", "actions": [{"name": "answer"}, {"name": "add"}, {"name": "process"}]}]}
                    """,
                code: "static int64_t sum;",
                hooks: [
                    "suspend": "reply_int(call->token, sum);", "resume": "sum = arguments[0].as.integer;",
                ]))
        #expect(try host.host.perform("Bad", "add") == 1)
        let before = try host.host.perform("Bad", "process")
        try host.host.restart("Bad")
        #expect(try host.host.perform("Bad", "process") != before)
        #expect(try host.host.perform("Bad", "add") == 2)
    }

    @Test func `A new version starts without a state if the old one crashes in suspend`() throws {
        let old = CModule(name: "Bad", hooks: ["suspend": "abort();", "unsuspend": ""])
        let host = try host([.zero], old)
        #expect(host.answer("Bad") == "yes")
        try CModule(name: "Bad", version: "1.1.0", answer: "new", hooks: ["resume": ""])
            .build(into: host.plugins, as: "bad.so")
        #expect(eventually { host.answer("Bad") == "new" })
        #expect(host.status("bad.so")?.version == "1.1.0")
        #expect(host.status("bad.so")?.error == nil)
    }

    @Test func `Only isolated modules can be restarted`() throws {
        let host = try TestHost([CModule().build()]) { $0.isolation.modules = .named(["Other"]) }
        #expect(throws: PluginError.self) { try host.host.restart("Good") }
        #expect(throws: PluginError.self) { try host.host.restart("Nobody") }
        #expect(host.messages.contains { $0.contains("The module “Other”, which is to run in a process") })
        #expect(host.host.modules.first?.process == nil)
        #expect(host.answer() == "yes")
    }

    @Test func `Calls that arrive during the first restart wait for it`() async throws {
        let module = CModule(
            name: "Bad", actions: crashing.actions, activate: "usleep(300000);")
        let host = try host([.zero], module)
        #expect(host.code("Bad", "abort") == .moduleCrashed)
        // The worker is being started again.
        let answers = try await onThreads(4) { _ in host.answer("Bad") }
        #expect(answers == Array(repeating: "yes", count: 4))
        let later = try await host.host.call("Bad", "answer")
        #expect(later == "yes")
    }

    @Test func `A handler of module.crashed reaches the module that was started again`() throws {
        let host = try host([.zero])
        let got = Events()
        let subscription = host.host.on("module.crashed") { [weak program = host.host] _ in
            do throws(PluginError) {
                got.add(try program?.perform("Bad", "answer").string ?? "")
            } catch {
                got.add(error.code.rawValue)
            }
        }
        #expect(host.code("Bad", "abort") == .moduleCrashed)
        #expect(eventually { got.all == ["yes"] })
        subscription.cancel()
    }

    @Test func `The event module.crashed is posted, and module.replaced is not`() throws {
        let host = try host([.zero])
        let events = host.plugins  // Keeps the folder alive.
        let got = Events()
        let subscriptions = ["module.crashed", "module.replaced"].map { name in
            host.host.on(name) { event in got.add(name) }
        }
        #expect(host.code("Bad", "abort") == .moduleCrashed)
        #expect(eventually { host.answer("Bad") == "yes" })
        #expect(eventually { got.all == ["module.crashed"] })
        for subscription in subscriptions { subscription.cancel() }
        _ = events
    }
}

private final class Events: Sendable {
    private let names = Mutex<[String]>([])
    var all: [String] { names.withLock { $0 } }
    func add(_ name: String) { names.withLock { $0.append(name) } }
}
