import Dispatch
import PluginABI
import PluginFile
import Synchronization

/// The calls of module code during the life cycle of modules: `activate`, hooks, missed events, `deactivate`.
struct Hooks: Sendable {
    let calls: Calls
    let runner: HookRunner
    let waiters: HookRunner
    let configuration: HostConfiguration
    /// The journal, which blames modules that end the host while they are being started; `nil` before the host is
    /// started.
    let journal: Journal?
    /// Whether changes wait for hooks until they have returned or have exceeded their timeout.
    let isPatient: Bool
    let changePatience: ChangePatience
    /// The waits of the thread that changes modules.
    let waits: ChangeWaits

    /// How long the change waits for the next hook.
    var patience: Duration { changePatience.time(configuration) }
    /// Whether the change waits for code of modules until it has returned or has exceeded its timeout.
    var waitsForAll: Bool { isPatient || configuration.hookPatience >= configuration.hookTimeout }
    /// How long the change waits for code that is already running.
    var patienceWithOthers: Duration { waitsForAll ? configuration.hookTimeout : patience }

    /// Runs code that waits for a hook, on a thread of its own, and waits for it as long as the host's patience lasts.
    ///
    /// - Parameters:
    ///   - isAwaited: Whether the code is waited for until it has returned; it then runs on this thread.
    ///   - late: Called with the result, on the other thread, if this function has returned before.
    /// - Returns: The result; `nil` if it comes later.
    func attempt<Result: Sendable>(
        isAwaited: Bool = false, _ body: @escaping @Sendable () -> Result, late: @escaping @Sendable (Result) -> Void
    ) -> Result? {
        guard !isAwaited, !waitsForAll else { return body() }
        let meeting = Meeting<Result>()
        let wait = Patience(subject: "", module: nil, timeout: patience) { _ in }
        do throws(PluginError) {
            _ = try waiters.run(for: ObjectIdentifier(calls.core), wait) {
                let result = body()
                if meeting.isLate(result) { late(result) }
            }
        } catch {
            return body()  // No thread can be started.
        }
        let result = meeting.leave()
        if result == nil { changePatience.end() }
        return result
    }

    /// A result that one thread has and another thread waits for; the latter may stop waiting at the same time.
    private final class Meeting<Result: Sendable>: Sendable {
        private let state = Mutex<(result: Result?, isLeft: Bool)>((nil, false))

        /// Delivers the result. Returns whether the other thread has stopped waiting.
        func isLate(_ result: Result) -> Bool {
            state.withLock { state in
                state.result = result
                return state.isLeft
            }
        }

        /// Stops waiting. Returns the result if it is there.
        func leave() -> Result? {
            state.withLock { state in
                state.isLeft = true
                return state.result
            }
        }
    }

    /// Starts a hook, or returns `nil` if the module does not have it. When this function returns, a synchronous hook
    /// has ended or has exceeded its timeout.
    ///
    /// - Throws: `outOfResources` if no thread can be started.
    func begin(
        _ hook: ModuleManifest.Hook, of generation: Generation, _ arguments: Parameters = [:], timeout: Duration
    ) throws(PluginError) -> StartedHook? {
        guard let endpoint = generation.hooks[hook.rawValue], !generation.hasCrashed else { return nil }
        let outcome = AwaitedOutcome(for: calls.program, waits, calling: generation)
        let start = monotonicNow()
        let step = step(of: hook, generation)
        let callTimeout = limit(of: step, generation, timeout)?.nanoseconds ?? 0
        let run: @Sendable () -> Void = { [calls] in
            let call = Calls.Call(
                parent: 0, timeout: endpoint.isAsync ? callTimeout : 0, isRemote: false, mode: .any,
                receiver: outcome.receiver())
            do throws(PluginError) {
                try arguments.lend { entries in
                    _ = calls.call(endpoint, entries, call) { _, record in
                        calls.occupy(record, .passUnretained(endpoint), call)
                        return true
                    }
                }
            } catch {
                call.receiver.receive(error)
            }
        }
        var overdue: Duration?
        let blame = blame(generation)
        // Later parts of an asynchronous hook run on other threads, so it is blamed until it replies.
        if endpoint.isAsync { blame?.begin(step) }
        do throws(PluginError) {
            if try runGuarded(hook.rawValue, of: generation, step, within: timeout, run) == nil { overdue = timeout }
        } catch {
            waits.end(generation)
            if endpoint.isAsync { blame?.end(step) }
            throw error
        }
        return StartedHook(
            hook: hook, generation: generation, hooks: self, start: start, outcome: outcome, timeout: timeout,
            overdue: overdue,
            step: endpoint.isAsync ? step : nil)
    }

    /// Returns the journal step of a hook; `nil` if it is not part of a start.
    private func step(of hook: ModuleManifest.Hook, _ generation: Generation) -> Journal.Step? {
        switch hook {
        case .setUp, .resume, .`init`: .activation
        case .didStart: .start
        default: stepOfEnd(generation)
        }
    }

    /// Returns the journal step of `tearDown` and `deactivate`, which are part of the start if the start has failed.
    private func stepOfEnd(_ generation: Generation) -> Journal.Step? {
        blame(generation)?.isStarting == true ? .activation : nil
    }

    /// Returns the module's entry in the crash report and the journal.
    ///
    /// - Returns: `nil` for an isolated module, which does not end the host.
    fileprivate func blame(_ generation: Generation) -> Blame? {
        generation.module.flatMap { $0.process == nil ? Blame($0.staged, journal) : nil }
    }

    /// Runs module code on a thread that it may keep. Returns its result, or `nil` if it does not return within the
    /// timeout.
    ///
    /// - Parameters:
    ///   - name: The name of the code, such as `setUp`.
    ///   - step: The step of the start that the code belongs to.
    /// - Throws: `outOfResources`.
    private func runGuarded<Result: Sendable>(
        _ name: String, of generation: Generation, _ step: Journal.Step?, within timeout: Duration,
        _ body: @escaping @Sendable () -> Result
    ) throws(PluginError) -> Result? {
        if step != nil { generation.startingCode.withLock { $0 = (name, monotonicNow()) } }
        let blame = blame(generation)
        let owner = ObjectIdentifier(calls.core)
        let patience = patience(with: name, of: generation, limit(of: step, generation, timeout))
        let result = try runner.run(for: owner, patience) {
            if let blame { blame.during(step, step == nil ? name : nil, body) } else { body() }
        }
        if result == nil, step != nil { generation.isHanging.store(true, ordering: .releasing) }
        return result
    }

    /// Returns how long a step of a start may take; `nil` for no limit, if the module is being debugged.
    private func limit(of step: Journal.Step?, _ generation: Generation, _ timeout: Duration) -> Duration? {
        step != nil && generation.module?.process?.isDebugged == true ? nil : timeout
    }

    fileprivate func patience(with name: String, of generation: Generation, _ timeout: Duration?) -> Patience {
        Patience(
            subject: "\(name) of \(generation.label) (\(generation.file))", module: generation.name, timeout: timeout,
            silence: min(Patience.silence, configuration.hookPatience), log: calls.settings.log)
    }

    /// Passes the host's function table to a module and runs its `setUp`.
    ///
    /// - Throws: `activationFailed` if the module refuses activation, `setUp` fails, or either does not return in time;
    ///   `outOfResources`.
    func activate(_ generation: Generation) throws(PluginError) {
        let timeout = configuration.hookTimeout
        if let module = generation.module, let activate = module.description.pointee.activate {
            let (description, table) = (UInt(bitPattern: module.description), UInt(bitPattern: generation.hostTable))
            let number = try runGuarded("activate", of: generation, .activation, within: timeout) {
                // The description is static data of an image that is never unmapped, and the table is never freed.
                activate(
                    UnsafePointer<plugin_module>(bitPattern: description)!.pointee.data,
                    UnsafePointer(bitPattern: table))
            }
            guard let number else { throw overdue("activate", of: generation, timeout) }
            if let crash = generation.crash(in: "activate") { throw crash }
            guard number == 0 else {
                throw PluginError(
                    .activationFailed,
                    "\(generation.name) (\(generation.file)) refused activation: activate returned \(number). "
                        + "It returns 0 if the module can serve.")
            }
        }
        guard !generation.isEnding.load(ordering: .sequentiallyConsistent) else {
            throw PluginError(
                .activationFailed,
                "\(generation.name) (\(generation.file)) is not set up: it was no longer wanted when activate returned."
            )
        }
        try begin(.setUp, of: generation, timeout: timeout)?.wait()
        if let crash = generation.crash(in: "setUp") { throw crash }
        generation.isSetUp.store(true, ordering: .releasing)
    }

    /// Delivers to a module the sticky events that were posted before it started.
    ///
    /// - Throws: `activationFailed` if a subscriber does not return in time; `outOfResources`.
    private func deliverMissedEvents(to generation: Generation) throws(PluginError) {
        let timeout = configuration.hookTimeout
        let name = "a subscriber to a sticky event"
        let end: Void? = try runGuarded(name, of: generation, .start, within: timeout) { [calls] in
            calls.deliverSticky(to: [generation])
        }
        if end == nil { throw overdue(name, of: generation, timeout) }
    }

    /// Runs `tearDown`, destroys shared instances, and calls `deactivate`, after which the module is not called again.
    /// Does nothing if the module's start hangs.
    ///
    /// - Throws: `activationFailed` if `tearDown` fails, or module code does not return in time; `outOfResources`.
    func tearDown(_ generation: Generation) throws(PluginError) {
        let timeout = configuration.shutdownTimeout
        guard !generation.isHanging.load(ordering: .acquiring), !generation.hasCrashed else { return }
        var failure: PluginError?
        if generation.isSetUp.load(ordering: .acquiring) {
            do throws(PluginError) { try begin(.tearDown, of: generation, timeout: timeout)?.wait() } catch {
                failure = error
            }
        }
        try deactivate(generation, timeout)
        if let failure { throw failure }
    }

    private func deactivate(_ generation: Generation, _ timeout: Duration) throws(PluginError) {
        let description = UInt(bitPattern: generation.module?.description)
        let end: Void? = try runGuarded("deactivate", of: generation, stepOfEnd(generation), within: timeout) {
            for provider in generation.providers { provider.destroyShared() }
            guard let description = UnsafePointer<plugin_module>(bitPattern: description) else { return }
            description.pointee.deactivate?(description.pointee.data)
        }
        if end == nil { throw overdue("deactivate", of: generation, timeout) }
    }

    fileprivate func overdue(_ name: String, of generation: Generation, _ timeout: Duration) -> PluginError {
        PluginError(
            .activationFailed,
            "\(name) of \(generation.name) (\(generation.file)) did not return within \(timeout). It continues on a "
                + "thread of its own.")
    }
}

/// A hook that was started and may have ended.
struct StartedHook {
    let hook: ModuleManifest.Hook
    let generation: Generation
    fileprivate let hooks: Hooks
    /// The time when the hook was started, in `CLOCK_MONOTONIC` nanoseconds.
    let start: Int64
    let outcome: AwaitedOutcome
    /// The timeout of the hook.
    fileprivate let timeout: Duration
    /// The timeout that a synchronous hook has exceeded.
    let overdue: Duration?
    /// The journal step of an asynchronous hook, which ends when the hook replies.
    let step: Journal.Step?

    /// Waits for the end of the hook as long as the host's patience lasts since the hook was started. Returns false if
    /// it has not ended by then.
    func endsSoon() -> Bool {
        guard overdue == nil, !hooks.waitsForAll else { return true }
        let left = max(0, hooks.patience.nanoseconds - (monotonicNow() - start))
        if outcome.hasArrived(within: .nanoseconds(left)) { return true }
        hooks.changePatience.end()
        return false
    }

    /// Waits for the end of the hook and returns its result.
    ///
    /// - Throws: `activationFailed`, with the error of the hook or because it exceeded its timeout.
    @discardableResult
    func wait() throws(PluginError) -> Value {
        var isOver = true
        defer { if isOver { hooks.blame(generation)?.end(step) } }
        if let overdue { throw hooks.overdue(hook.rawValue, of: generation, overdue) }
        defer {
            hooks.calls.core.profiler.note(
                .hook, hook.rawValue, module: generation.name, from: start,
                to: outcome.end.load(ordering: .acquiring))
        }
        do throws(PluginError) {
            // The call has a timeout of its own, after which it replies.
            return try outcome.wait(hooks.patience(with: hook.rawValue, of: generation, nil))
        } catch {
            // The code of a module that cannot be started continues, and is blamed until the host ends.
            isOver =
                hook == .didStart || error.code != .deadlineExceeded || monotonicNow() - start < timeout.nanoseconds
            if let crash = generation.crash(in: hook.rawValue) { throw crash }
            throw PluginError(
                .activationFailed,
                "\(hook.rawValue) of \(generation.name) (\(generation.file)) failed: \(error.message)",
                source: error.source)
        }
    }
}

// MARK: Hooks whose failures are only logged

extension Hooks {
    /// Runs `didStart` of newcomers in their order. A module serves even if its `didStart` fails.
    func announceStart(to newcomers: [Generation]) {
        for generation in newcomers where generation.hooks["didStart"] != nil {
            logLater(.error, generation) { () throws(PluginError) in
                _ = try begin(.didStart, of: generation, timeout: configuration.hookTimeout)?.wait()
            }
        }
    }

    /// Delivers to newcomers, in their order, the sticky events that were posted before they started. If the
    /// subscribers of a newcomer do not return in time, the next one still receives its events.
    func announceMissedEvents(to newcomers: [Generation]) {
        for generation in newcomers {
            guard !generation.subscriptions.isEmpty else {
                calls.deliverSticky(to: [generation])
                continue
            }
            logLater(.error, generation) { () throws(PluginError) in
                guard !generation.isEnding.load(ordering: .sequentiallyConsistent) else { return }
                try deliverMissedEvents(to: generation)
            }
        }
    }

    /// Runs `willStop` of modules in their order, each with the shutdown timeout, after their `didStart` and the
    /// delivery of missed events have ended.
    ///
    /// - Parameter patience: How long to wait for this code in total; `nil` for as long as a change waits for hooks. A
    ///   module whose code is still running then is not notified; in a change, it is notified when the code has ended.
    func announceStop(to generations: [Generation], waitingAtMost patience: Duration? = nil) {
        let end = monotonicNow().adding((patience ?? patienceWithOthers).nanoseconds)
        for generation in generations { generation.isEnding.store(true, ordering: .sequentiallyConsistent) }
        for generation in generations where generation.hooks["willStop"] != nil {
            let left = Duration.nanoseconds(max(0, end - monotonicNow()))
            let hasStarted = generation.waitForCodeAfterStart(within: left)
            guard !hasStarted, patience == nil, !waitsForAll else {
                tellStop(generation, hasStarted: hasStarted)
                continue
            }
            changePatience.end()
            let before = generation.addCodeAfterStart()
            ThreadPool.shared.run {
                before.previous?.wait()  // It has a timeout of its own.
                tellStop(generation, hasStarted: true)
                before.end.leave()
            }
        }
    }

    /// Runs `willStop` of a module, unless code of its start is still running, and logs its failure.
    private func tellStop(_ generation: Generation, hasStarted: Bool) {
        do throws(PluginError) {
            guard hasStarted, !generation.isHanging.load(ordering: .acquiring) else {
                throw PluginError(
                    .activationFailed,
                    "willStop of \(generation.name) (\(generation.file)) is not called: its didStart or a subscriber to "
                        + "a sticky event has not returned.")
            }
            _ = try begin(.willStop, of: generation, timeout: configuration.shutdownTimeout)?.wait()
        } catch {
            generation.log(.warning, error.message)
        }
    }

    /// Runs code of a module that was started, after earlier such code has ended, and logs its failure. When the
    /// patience is over, the change continues without the code.
    private func logLater(
        _ level: LogLevel, _ generation: Generation, _ body: @escaping @Sendable () throws(PluginError) -> Void
    ) {
        let log: @Sendable (PluginError?) -> Void = { if let error = $0 { generation.log(level, error.message) } }
        let (before, end) = generation.addCodeAfterStart()
        let run: @Sendable () -> PluginError? = {
            defer { end.leave() }
            before?.wait()  // It has a timeout of its own.
            do throws(PluginError) {
                try body()
                return nil
            } catch {
                return error
            }
        }
        log(attempt(run, late: log) ?? nil)
    }
}
