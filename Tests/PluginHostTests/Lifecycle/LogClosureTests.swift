import Foundation
import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

/// Calls that the program's log closure makes while calls of the module wait for what the closure reports.
@Suite struct LogClosureTests {
    /// A log closure that calls a module, and the errors of these calls.
    private final class Caller: Sendable {
        let host = Mutex<PluginHost?>(nil)
        let codes = Mutex<[PluginError.Code?]>([])

        func call(_ target: String) {
            guard let host = host.withLock(\.self) else { return }
            var code: PluginError.Code?
            do throws(PluginError) { _ = try host.perform(target, "answer") } catch { code = error.code }
            codes.withLock { $0.append(code) }
        }
    }

    /// - Parameter text: Part of the message after which the closure calls the module.
    private func host(
        _ caller: Caller, calling target: String, after text: String,
        configure: (inout PluginHost.Configuration) -> Void = { _ in }
    ) throws -> TestHost {
        let host = try TestHost { configuration, _ in
            configuration.log = { if $0.message.contains(text) { caller.call(target) } }
            configure(&configuration)
        }
        caller.host.withLock { $0 = host.host }
        return host
    }

    @Test func `A log closure that calls a module which has crashed does not prevent its restart`() throws {
        let caller = Caller()
        let host = try host(caller, calling: "Bad", after: " crashed. ") { configuration in
            configuration.isolation.modules = .all
            configuration.isolation.restartPauses = [.zero]
        }
        defer { caller.host.withLock { $0 = nil } }
        try crashing.build(into: host.plugins, as: "bad.so")
        try host.start()
        #expect(host.code("Bad", "abort") == .moduleCrashed)
        try #require(eventually { caller.codes.withLock { $0.first } == .circularWait })
        #expect(eventually { host.answer("Bad") == "yes" })
    }

    @Test func `A log closure that calls a module which hands over its state does not prevent that`() throws {
        let caller = Caller()
        let host = try host(caller, calling: "Counter", after: "unsuspend of ")
        defer { caller.host.withLock { $0 = nil } }
        let refusing = "refuse(call, \"No.\"); return;"
        try CModule(name: "Counter", hooks: ["suspend": "", "unsuspend": refusing])
            .build(into: host.plugins, as: "counter.so")
        try host.start()
        try CModule(name: "Counter", version: "2.0.0", hooks: ["resume": refusing])
            .build(into: host.plugins, as: "counter.so")
        try #require(eventually { caller.codes.withLock { $0.first } == .circularWait })
        #expect(eventually { host.answer("Counter") == "yes" })
        #expect(eventually { host.status("counter.so")?.error != nil })
    }
}
