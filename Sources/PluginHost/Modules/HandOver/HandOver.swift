import Dispatch
import PluginABI
import PluginFile

/// The hand-over of a module's state from one generation to the next. New calls are blocked until the hand-over is
/// complete or undone.
///
/// The steps are those of a code change in Erlang: suspend the old generation, hand its state over, resume in the new
/// generation. Unlike in Erlang, a failure of any step leaves the old generation as it was.
struct HandOver: Sendable {
    let old: Generation
    private let barrier: CallBarrier
    private let hooks: Hooks
    private let timeout: Duration
    private let state: Value

    /// Returns whether the old generation hands its state over to the new one.
    static func isWanted(from old: Generation, to new: Generation) -> Bool {
        old.hooks["suspend"] != nil && (new.hooks["resume"] != nil || old.isExclusive || new.isExclusive)
    }

    /// Blocks new calls, waits for running calls, and calls `suspend` to get the module's state.
    ///
    /// - Throws: `deadlineExceeded`, or the error of `suspend`. The old generation then continues to serve.
    init(from old: Generation, _ hooks: Hooks) throws(PluginError) {
        (self.old, self.hooks) = (old, hooks)
        timeout = hooks.configuration.handOverTimeout
        barrier = CallBarrier(
            old, limit: hooks.configuration.waitingCallsLimit, endedOn: [hooks.waits.queue])
        do throws(PluginError) {
            try barrier.waitForCalls(until: .now() + timeout.dispatchInterval)
        } catch {
            barrier.end(isSucceeded: false)
            throw PluginError(
                error.code,
                "The state of \(old.name) cannot be handed over: after \(timeout), \(error.message)")
        }
        do throws(PluginError) {
            guard let suspend = try hooks.begin(.suspend, of: old, timeout: timeout) else {
                throw PluginError(.moduleCrashed, "\(old.name) crashed before it could hand over its state.")
            }
            state = try suspend.wait()
        } catch {
            Self.unsuspend(old, hooks, timeout)
            barrier.end(isSucceeded: false)
            throw error
        }
    }

    /// Passes the state to `resume` of the new generation, if it has that hook.
    ///
    /// - Throws: The error of `resume`.
    func complete(in new: Generation) throws(PluginError) {
        let arguments = Parameters(positional: [state, .string(old.version.description)])
        try hooks.begin(.resume, of: new, arguments, timeout: timeout)?.wait()
    }

    /// Undoes the hand-over: the old generation continues to serve.
    func undo() {
        Self.unsuspend(old, hooks, timeout)
        barrier.end(isSucceeded: false)
    }

    /// Ends the hand-over: blocked calls proceed to the generation that serves now.
    func finish() { barrier.end(isSucceeded: true) }

    private static func unsuspend(_ generation: Generation, _ hooks: Hooks, _ timeout: Duration) {
        do throws(PluginError) {
            try hooks.begin(.unsuspend, of: generation, timeout: timeout)?.wait()
        } catch {
            generation.log(.error, error.message)
        }
    }
}

extension Generation {
    fileprivate var isExclusive: Bool { manifest?.isExclusive == true }
}
