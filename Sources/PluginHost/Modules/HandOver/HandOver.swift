import Dispatch
import PluginABI
import PluginFile

/// A module's state on its way from one generation to the next. New calls are held back until it has arrived, or the one
/// that gave it goes on.
///
/// The order is that of Erlang's code change: suspend the old one, hand over, resume in the new one; but a failure at any
/// point leaves the old one as it was.
struct HandOver {
    let old: Generation
    private let barrier: CallBarrier
    private let hooks: Hooks
    private let timeout: Duration
    private let state: Value

    /// Whether a module gives its state to this successor.
    static func isWanted(from old: Generation, to new: Generation) -> Bool {
        old.hooks["suspend"] != nil && (new.hooks["resume"] != nil || old.isExclusive || new.isExclusive)
    }

    /// Holds new calls back, waits for the running ones, and lets the module give its state.
    ///
    /// - Throws: `deadlineExceeded`, or what `suspend` has thrown; the module goes on then.
    init(from old: Generation, _ hooks: Hooks) throws(PluginError) {
        (self.old, self.hooks) = (old, hooks)
        timeout = hooks.configuration.handOverTimeout
        barrier = CallBarrier(old, limit: hooks.configuration.waitingCallsLimit)
        do throws(PluginError) {
            try barrier.waitForCalls(until: .now() + timeout.dispatchInterval)
        } catch {
            barrier.end(isSucceeded: false)
            throw PluginError(
                error.code,
                "The state of \(old.name) cannot be handed over: after \(timeout), \(error.message)")
        }
        do throws(PluginError) {
            state = try hooks.begin(.suspend, of: old, timeout: timeout)!.wait()
        } catch {
            Self.unsuspend(old, hooks, timeout)
            barrier.end(isSucceeded: false)
            throw error
        }
    }

    /// Gives the state to the successor, if it takes one.
    ///
    /// - Throws: what `resume` has thrown.
    func complete(in new: Generation) throws(PluginError) {
        let arguments = Parameters(positional: [state, .string(old.version.description)])
        try hooks.begin(.resume, of: new, arguments, timeout: timeout)?.wait()
    }

    /// The old one goes on as if nothing had been.
    func undo() {
        Self.unsuspend(old, hooks, timeout)
        barrier.end(isSucceeded: false)
    }

    /// What was held back goes to whatever serves now.
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
