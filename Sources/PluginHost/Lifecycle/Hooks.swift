import Dispatch
import Foundation
import PluginABI
import Synchronization

// The moments of a module's life at which the host calls it.

extension Generation {
    /// Starts a hook; nil if the module has none of that name. A synchronous one has ended when this returns, unless its
    /// time is over.
    func beginHook(_ hook: ModuleManifest.Hook, _ arguments: Parameters = [:], timeout: Duration) -> StartedHook? {
        guard let endpoint = hooks[hook.rawValue] else { return nil }
        let outcome = AwaitedOutcome(for: dispatcher.program)
        let start = monotonicNow()
        let run: @Sendable () -> Void = { [dispatcher] in
            let call = Dispatcher.Call(
                parent: 0, timeout: endpoint.isAsync ? timeout.nanoseconds : 0, isRemote: false, mode: .any,
                receiver: outcome.receiver())
            do throws(PluginError) {
                try arguments.withEntries { entries, count in
                    let entries = UnsafeBufferPointer(start: entries, count: count)
                    _ = dispatcher.call(endpoint, entries, call) { _, record in
                        dispatcher.occupy(record, .passUnretained(endpoint), call)
                        return true
                    }
                }
            } catch {
                call.receiver.receive(error)
            }
        }
        var isOverdue = false
        if endpoint.isAsync {
            run()
        } else {
            isOverdue = !dispatcher.hookRunner.run(
                before: .now() + timeout.dispatchInterval, for: ObjectIdentifier(dispatcher), run)
        }
        return StartedHook(
            hook: hook, generation: self, start: start, outcome: outcome, overdue: isOverdue ? timeout : nil)
    }
}

/// A hook of a generation that was started, and may have ended.
struct StartedHook {
    let hook: ModuleManifest.Hook
    let generation: Generation
    /// CLOCK_MONOTONIC nanoseconds.
    let start: Int64
    let outcome: AwaitedOutcome
    /// The time that it had and did not end in, if it is synchronous.
    let overdue: Duration?

    /// Waits for the end of the hook, and returns what it gives.
    ///
    /// - Throws: `activationFailed`, with what the hook has thrown or that its deadline has passed.
    @discardableResult
    func wait() throws(PluginError) -> Value {
        if let overdue {
            throw PluginError(
                .activationFailed,
                "\(hook.rawValue) of \(generation.name) (\(generation.file)) did not end within \(overdue). It goes on "
                    + "in a thread of its own.")
        }
        defer {
            generation.dispatcher.profiler.note(
                .hook, hook.rawValue, module: generation.name, from: start,
                to: outcome.end.load(ordering: .acquiring))
        }
        do throws(PluginError) {
            return try outcome.wait()
        } catch {
            throw PluginError(
                .activationFailed,
                "\(hook.rawValue) of \(generation.name) (\(generation.file)) failed: \(error.message)",
                source: error.source)
        }
    }
}

extension Lifecycle {
    /// Runs the `didStart` of newcomers in their order. One that fails is logged; its module goes on.
    func announceStart(to newcomers: [Generation]) {
        for generation in newcomers {
            do throws(PluginError) {
                try generation.beginHook(.didStart, timeout: configuration.hookTimeout)?.wait()
            } catch {
                log(.error, generation, error.message)
            }
        }
    }

    /// Runs the `willStop` of modules in their order, each within the timeout of the end.
    func announceStop(to generations: [Generation]) {
        for generation in generations {
            do throws(PluginError) {
                try generation.beginHook(.willStop, timeout: configuration.shutdownTimeout)?.wait()
            } catch {
                log(.warning, generation, error.message)
            }
        }
    }

    func log(_ level: LogLevel, _ generation: Generation, _ message: String) {
        dispatcher.settings.log(
            LogEntry(level: level, module: generation.name, message: "\(generation.label) \(message)"))
    }
}

extension Duration {
    /// At most about 292 years.
    var dispatchInterval: DispatchTimeInterval { .nanoseconds(Int(nanoseconds)) }
}
