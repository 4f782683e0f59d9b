import Dispatch
import Foundation
import PluginABI
import Synchronization

// The moments of a module's life at which the host calls it.

/// When a module has its turn among others, in hooks and events: level, then priority (higher first), then name.
///
/// The one order of all modules; what depends on others will come before the level here.
struct ModuleOrder: Comparable {
    let level: ModuleManifest.Level
    let priority: Int
    let name: String

    init(_ manifest: ModuleManifest) {
        (level, priority, name) = (manifest.level, manifest.priority, manifest.name)
    }

    static func < (left: ModuleOrder, right: ModuleOrder) -> Bool {
        if left.level != right.level { return left.level == .basic }
        if left.priority != right.priority { return left.priority > right.priority }
        return left.name < right.name
    }
}

extension [Generation] {
    /// In the order in which modules have their turn.
    var inOrder: [Generation] {
        sorted { left, right in
            guard let a = left.manifest, let b = right.manifest else { return left.manifest == nil }
            return ModuleOrder(a) < ModuleOrder(b)
        }
    }
}

extension Generation {
    /// Starts a hook; nil if the module has none of that name. A synchronous one has ended when this returns.
    func beginHook(_ hook: ModuleManifest.Hook, timeout: Duration) -> StartedHook? {
        guard let endpoint = hooks[hook.rawValue] else { return nil }
        let outcome = AwaitedOutcome()
        let start = monotonicNow()
        let call = Dispatcher.Call(
            parent: 0, timeout: endpoint.isAsync ? timeout.nanoseconds : 0, isRemote: false, mode: .any,
            receiver: outcome.receiver())
        _ = dispatcher.call(endpoint, UnsafeBufferPointer(start: nil, count: 0), call) { _, record in
            dispatcher.occupy(record, .passUnretained(endpoint), call)
            return true
        }
        return StartedHook(hook: hook, generation: self, start: start, outcome: outcome)
    }
}

/// A hook of a generation that was started, and may have ended.
struct StartedHook {
    let hook: ModuleManifest.Hook
    let generation: Generation
    /// CLOCK_MONOTONIC nanoseconds.
    let start: Int64
    let outcome: AwaitedOutcome

    /// Waits for the end of the hook.
    ///
    /// - Throws: `activationFailed`, with what the hook has thrown or that its deadline has passed.
    func wait() throws(PluginError) {
        defer {
            generation.dispatcher.profiler.note(
                .hook, hook.rawValue, module: generation.name, from: start,
                to: outcome.end.load(ordering: .acquiring))
        }
        do throws(PluginError) {
            try outcome.wait()
        } catch {
            throw PluginError(
                .activationFailed,
                "\(hook.rawValue) of \(generation.name) (\(generation.file)) failed: \(error.message)",
                source: error.source)
        }
    }
}

extension Lifecycle {
    /// Runs the `init` of newcomers in their order; asynchronous ones overlap. Returns when all have ended.
    ///
    /// - Returns: Which failed, and why.
    func initialize(_ newcomers: [Generation]) -> [(generation: Generation, error: PluginError)] {
        var failures: [(generation: Generation, error: PluginError)] = []
        var started: [StartedHook] = []
        for generation in newcomers where generation.hooks["init"] != nil {
            guard let staged = records[generation.file]?.module?.staged else { continue }
            // While its first part runs, the file is to blame if the process dies.
            let hook = try? loader.during(.activation, staged) { () throws(PluginError) in
                generation.beginHook(.`init`, timeout: configuration.hookTimeout)
            }
            if let hook { started.append(hook) }
        }
        for hook in started {
            do throws(PluginError) { try hook.wait() } catch { failures.append((hook.generation, error)) }
        }
        return failures
    }

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
        for generation in generations where generation.hooks["willStop"] != nil {
            run("willStop", of: generation, before: .now() + configuration.shutdownTimeout.dispatchInterval) {
                [configuration] () throws(PluginError) in
                try generation.beginHook(.willStop, timeout: configuration.shutdownTimeout)?.wait()
            }
        }
    }

    /// Runs `tearDown` when the last call has ended, unless that takes too long.
    func tearDown(_ generation: Generation, before deadline: DispatchTime) {
        while generation.callsInFlight > 0, DispatchTime.now() < deadline { usleep(1000) }
        guard generation.callsInFlight == 0 else {
            return log(.warning, generation, "was still running calls when the host stopped; it was not torn down.")
        }
        run("tearDown", of: generation, before: .now() + configuration.shutdownTimeout.dispatchInterval) {
            [configuration] () throws(PluginError) in
            try generation.tearDown(timeout: configuration.shutdownTimeout)
        }
    }

    /// Runs a hook of the end on a thread of its own, and stops waiting at the deadline.
    private func run(
        _ hook: String, of generation: Generation, before deadline: DispatchTime,
        _ body: @escaping @Sendable () throws(PluginError) -> Void
    ) {
        let done = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            do throws(PluginError) { try body() } catch { self.log(.error, generation, error.message) }
            done.signal()
        }
        if done.wait(timeout: deadline) == .timedOut { log(.warning, generation, "did not end its \(hook) in time.") }
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
