import CPluginABI
import PluginABI
import PluginFile
import Synchronization

/// Calls the code of modules at the moments of their lives: `activate`, hooks, missed events, `deactivate`.
struct Hooks: Sendable {
    let calls: Calls
    let runner: HookRunner
    let configuration: HostConfiguration
    /// Blames modules that end the host while they start; nil before the start.
    let journal: Journal?

    /// What waits for the code, as ``HookRunner/isCurrent(_:)`` identifies it.
    var owner: ObjectIdentifier { ObjectIdentifier(calls.core) }

    /// Starts a hook; nil if the module has none of that name. A synchronous one has ended when this returns, unless its
    /// time is over.
    ///
    /// - Throws: `outOfResources` when there is no thread for a synchronous one.
    func begin(
        _ hook: ModuleManifest.Hook, of generation: Generation, _ arguments: Parameters = [:], timeout: Duration
    ) throws(PluginError) -> StartedHook? {
        guard let endpoint = generation.hooks[hook.rawValue] else { return nil }
        let outcome = AwaitedOutcome(for: calls.program)
        let start = monotonicNow()
        let run: @Sendable () -> Void = { [calls] in
            let call = Calls.Call(
                parent: 0, timeout: endpoint.isAsync ? timeout.nanoseconds : 0, isRemote: false, mode: .any,
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
        let step = step(of: hook, generation)
        let blame = blame(generation)
        // The later parts of an asynchronous one run on other threads: it is to blame until it replies.
        if endpoint.isAsync { blame?.begin(step) }
        do throws(PluginError) {
            if try runGuarded(hook.rawValue, of: generation, step, within: timeout, run) == nil { overdue = timeout }
        } catch {
            if endpoint.isAsync { blame?.end(step) }
            throw error
        }
        return StartedHook(
            hook: hook, generation: generation, hooks: self, start: start, outcome: outcome, overdue: overdue,
            step: endpoint.isAsync ? step : nil)
    }

    /// What the journal calls a hook; nil when it is not part of a start.
    private func step(of hook: ModuleManifest.Hook, _ generation: Generation) -> Journal.Step? {
        switch hook {
        case .setUp, .resume, .`init`: .activation
        case .didStart: .start
        default: stepOfEnd(generation)
        }
    }

    /// The step of what a module does at its end: a start that is given up is a part of the start.
    private func stepOfEnd(_ generation: Generation) -> Journal.Step? {
        blame(generation)?.isStarting == true ? .activation : nil
    }

    /// How the crash report and the journal know a module.
    fileprivate func blame(_ generation: Generation) -> Blame? { generation.module.map { Blame($0.staged, journal) } }

    /// What code of a module returns, which runs on a thread that it may keep; nil when it has not returned within the
    /// timeout.
    ///
    /// - Parameters:
    ///   - name: What runs: `setUp`.
    ///   - step: What of the start it is.
    /// - Throws: `outOfResources`.
    private func runGuarded<Result: Sendable>(
        _ name: String, of generation: Generation, _ step: Journal.Step?, within timeout: Duration,
        _ body: @escaping @Sendable () -> Result
    ) throws(PluginError) -> Result? {
        let blame = blame(generation)
        let result = try runner.run(for: owner, patience(with: name, of: generation, timeout)) {
            if let blame { blame.during(step, step == nil ? name : nil, body) } else { body() }
        }
        if result == nil, step != nil { generation.isHanging = true }
        return result
    }

    fileprivate func patience(with name: String, of generation: Generation, _ timeout: Duration?) -> Patience {
        Patience(
            subject: "\(name) of \(generation.label) (\(generation.file))", module: generation.name, timeout: timeout,
            log: calls.settings.log)
    }

    /// Hands a module the host's table and runs its `setUp`.
    ///
    /// - Throws: `activationFailed`, or what `setUp` has thrown; `outOfResources`.
    func activate(_ generation: Generation) throws(PluginError) {
        let timeout = configuration.hookTimeout
        if let module = generation.module, let activate = module.description.pointee.activate {
            let (description, table) = (UInt(bitPattern: module.description), UInt(bitPattern: generation.hostTable))
            let number = try runGuarded("activate", of: generation, .activation, within: timeout) {
                // Static data of an image that is never unmapped, and a table that is never freed.
                activate(
                    UnsafePointer<plugin_module>(bitPattern: description)!.pointee.data,
                    UnsafePointer(bitPattern: table))
            }
            guard let number else { throw overdue("activate", of: generation, timeout) }
            guard number == 0 else {
                throw PluginError(
                    .activationFailed,
                    "\(generation.name) (\(generation.file)) refused to be activated, with the number \(number).")
            }
        }
        try begin(.setUp, of: generation, timeout: timeout)?.wait()
        generation.isSetUp = true
    }

    /// Tells a module the sticky events that were posted before it came.
    ///
    /// - Throws: `activationFailed` when a subscriber does not return in time; `outOfResources`.
    private func deliverMissedEvents(to generation: Generation) throws(PluginError) {
        let timeout = configuration.hookTimeout
        guard !generation.subscriptions.isEmpty else { return calls.deliverSticky(to: [generation]) }
        let name = "a subscriber to a sticky event"
        let end: Void? = try runGuarded(name, of: generation, .start, within: timeout) { [calls] in
            calls.deliverSticky(to: [generation])
        }
        if end == nil { throw overdue(name, of: generation, timeout) }
    }

    /// Runs `tearDown`, lets go of shared instances, and tells the module that nothing will be called any more. Does nothing
    /// while its start hangs.
    ///
    /// - Throws: `activationFailed` when `tearDown` has failed, or something did not end in time; `outOfResources`.
    func tearDown(_ generation: Generation) throws(PluginError) {
        let timeout = configuration.shutdownTimeout
        guard !generation.isHanging else { return }
        var failure: PluginError?
        if generation.isSetUp {
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
            "\(name) of \(generation.name) (\(generation.file)) did not end within \(timeout). It goes on in a thread of "
                + "its own.")
    }
}

/// A hook of a generation that was started, and may have ended.
struct StartedHook {
    let hook: ModuleManifest.Hook
    let generation: Generation
    fileprivate let hooks: Hooks
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
        defer { hooks.blame(generation)?.end(step) }
        if let overdue { throw hooks.overdue(hook.rawValue, of: generation, overdue) }
        defer {
            hooks.calls.core.profiler.note(
                .hook, hook.rawValue, module: generation.name, from: start,
                to: outcome.end.load(ordering: .acquiring))
        }
        do throws(PluginError) {
            // A timeout is the call's own: it replies then.
            return try outcome.wait(hooks.patience(with: hook.rawValue, of: generation, nil))
        } catch {
            throw PluginError(
                .activationFailed,
                "\(hook.rawValue) of \(generation.name) (\(generation.file)) failed: \(error.message)",
                source: error.source)
        }
    }
}

// MARK: What only stands in the log when it fails

extension Hooks {
    /// Runs the `didStart` of newcomers in their order. A module whose `didStart` fails goes on.
    func announceStart(to newcomers: [Generation]) {
        let timeout = configuration.hookTimeout
        forEach(newcomers, .error) { generation throws(PluginError) in
            _ = try begin(.didStart, of: generation, timeout: timeout)?.wait()
        }
    }

    /// Tells newcomers the sticky events that were posted before they came, in their order. Where the subscribers of one
    /// do not end in time, the others get theirs.
    func announceMissedEvents(to newcomers: [Generation]) {
        forEach(newcomers, .error) { generation throws(PluginError) in try deliverMissedEvents(to: generation) }
    }

    /// Runs the `willStop` of modules in their order, each within the timeout of the end.
    func announceStop(to generations: [Generation]) {
        let timeout = configuration.shutdownTimeout
        forEach(generations, .warning) { generation throws(PluginError) in
            _ = try begin(.willStop, of: generation, timeout: timeout)?.wait()
        }
    }

    private func forEach(
        _ generations: [Generation], _ level: LogLevel, _ body: (Generation) throws(PluginError) -> Void
    ) {
        for generation in generations {
            do throws(PluginError) { try body(generation) } catch { generation.log(level, error.message) }
        }
    }
}
