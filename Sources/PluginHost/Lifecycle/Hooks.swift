import CPluginABI
import CPluginHost
import Dispatch
import Foundation
import PluginABI
import PluginFile
import Synchronization

// The moments of a module's life at which the host calls it.

extension Generation {
    /// Starts a hook; nil if the module has none of that name. A synchronous one has ended when this returns, unless its
    /// time is over.
    ///
    /// - Throws: `outOfResources` when there is no thread for a synchronous one.
    func beginHook(
        _ hook: ModuleManifest.Hook, _ arguments: Parameters = [:], timeout: Duration
    ) throws(PluginError) -> StartedHook? {
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
        var overdue: Duration?
        let step = step(of: hook)
        // The later parts of an asynchronous one run on other threads: it is to blame until it replies.
        if endpoint.isAsync { blame?.begin(step) }
        do throws(PluginError) {
            if try !runGuarded(hook.rawValue, step, within: timeout, run) { overdue = timeout }
        } catch {
            if endpoint.isAsync { blame?.end(step) }
            throw error
        }
        return StartedHook(
            hook: hook, generation: self, start: start, outcome: outcome, overdue: overdue,
            step: endpoint.isAsync ? step : nil)
    }

    /// What the journal calls a hook; nil when it is not part of a start.
    private func step(of hook: ModuleManifest.Hook) -> Journal.Step? {
        switch hook {
        case .setUp, .resume, .`init`: .activation
        case .didStart: .start
        default: stepOfEnd
        }
    }

    /// The step of what a module does at its end: a start that is given up is a part of the start.
    private var stepOfEnd: Journal.Step? { blame?.isStarting == true ? .activation : nil }

    /// The crash report and the journal know the module by it.
    private var blame: Blame? { module?.blame }

    /// Runs code of the module on a thread that it may keep. False when it has not returned within the timeout.
    ///
    /// - Parameters:
    ///   - name: What runs: `setUp`.
    ///   - step: What of the start it is.
    /// - Throws: `outOfResources`.
    private func runGuarded(
        _ name: String, _ step: Journal.Step?, within timeout: Duration, _ body: @escaping @Sendable () -> Void
    ) throws(PluginError) -> Bool {
        let isOver = try dispatcher.hookRunner.run(
            for: ObjectIdentifier(dispatcher), patience(with: name, timeout)
        ) { [blame] in
            if let blame { blame.during(step, step == nil ? name : nil, body) } else { body() }
        }
        if !isOver, step != nil { isHanging = true }
        return isOver
    }

    fileprivate func patience(with name: String, _ timeout: Duration?) -> Patience {
        Patience(
            subject: "\(name) of \(label) (\(file))", module: self.name, timeout: timeout, log: dispatcher.settings.log)
    }

    /// What `activate` has returned, on its thread.
    private final class Answer: Sendable { let number = Atomic<Int32>(0) }

    /// Hands the module the host's table and runs its `setUp`.
    ///
    /// - Throws: `activationFailed`, or what `setUp` has thrown; `outOfResources`.
    func activate(timeout: Duration) throws(PluginError) {
        if let module, let activate = module.description.pointee.activate {
            let answer = Answer()
            let (description, table) = (UInt(bitPattern: module.description), UInt(bitPattern: hostTable))
            let isOver = try runGuarded("activate", .activation, within: timeout) {
                // Static data of an image that is never unmapped, and a table that is never freed.
                let description = UnsafePointer<plugin_module>(bitPattern: description)!
                let number = activate(description.pointee.data, UnsafePointer(bitPattern: table))
                answer.number.store(number, ordering: .releasing)
            }
            guard isOver else { throw overdue("activate", timeout) }
            let number = answer.number.load(ordering: .acquiring)
            guard number == 0 else {
                throw PluginError(
                    .activationFailed, "\(name) (\(file)) refused to be activated, with the number \(number).")
            }
        }
        try beginHook(.setUp, timeout: timeout)?.wait()
        isSetUp = true
    }

    /// Tells the module the sticky events that were posted before it came.
    ///
    /// - Throws: `activationFailed` when a subscriber does not return in time; `outOfResources`.
    func findMissedEvents(timeout: Duration) throws(PluginError) {
        guard !subscriptions.isEmpty else { return dispatcher.deliverSticky(to: [self]) }
        let name = "a subscriber to a sticky event"
        let isOver = try runGuarded(name, .start, within: timeout) { self.dispatcher.deliverSticky(to: [self]) }
        if !isOver { throw overdue(name, timeout) }
    }

    /// Lets its objects answer no more. What runs in them goes on.
    func revoke() {
        isRevoked.store(true, ordering: .sequentiallyConsistent)
        // Who does not see it has entered the call in its record by now.
        plugin_host_fence_heavy()
    }

    /// Runs `tearDown`, lets go of shared instances, and tells the module that nothing will be called any more. Does nothing
    /// while its start hangs.
    ///
    /// - Throws: `activationFailed` when `tearDown` has failed, or something did not end in time; `outOfResources`.
    func tearDown(timeout: Duration) throws(PluginError) {
        guard !isHanging else { return }
        var failure: PluginError?
        if isSetUp {
            do throws(PluginError) { try beginHook(.tearDown, timeout: timeout)?.wait() } catch { failure = error }
        }
        try deactivate(timeout)
        if let failure { throw failure }
    }

    private func deactivate(_ timeout: Duration) throws(PluginError) {
        let description = UInt(bitPattern: module?.description)
        let isOver = try runGuarded("deactivate", stepOfEnd, within: timeout) { [providers] in
            for provider in providers { provider.destroyShared() }
            guard let description = UnsafePointer<plugin_module>(bitPattern: description) else { return }
            description.pointee.deactivate?(description.pointee.data)
        }
        if !isOver { throw overdue("deactivate", timeout) }
    }

    fileprivate func overdue(_ name: String, _ timeout: Duration) -> PluginError {
        PluginError(
            .activationFailed,
            "\(name) of \(self.name) (\(file)) did not end within \(timeout). It goes on in a thread of its own.")
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
    /// What the journal holds against the module until it replies, if it is asynchronous.
    let step: Journal.Step?

    /// Waits for the end of the hook, and returns what it gives.
    ///
    /// - Throws: `activationFailed`, with what the hook has thrown or that its deadline has passed.
    @discardableResult
    func wait() throws(PluginError) -> Value {
        defer { generation.module?.blame.end(step) }
        if let overdue { throw generation.overdue(hook.rawValue, overdue) }
        defer {
            generation.dispatcher.profiler.note(
                .hook, hook.rawValue, module: generation.name, from: start,
                to: outcome.end.load(ordering: .acquiring))
        }
        do throws(PluginError) {
            // A timeout is the call's own: it replies then.
            return try outcome.wait(generation.patience(with: hook.rawValue, nil))
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

    /// Tells newcomers the sticky events that were posted before they came, in their order. Of one whose subscribers do not
    /// end in time that is logged; the others get theirs.
    func announceMissedEvents(to newcomers: [Generation]) {
        for generation in newcomers {
            do throws(PluginError) {
                try generation.findMissedEvents(timeout: configuration.hookTimeout)
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
