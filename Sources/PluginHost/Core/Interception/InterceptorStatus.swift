import PluginABI
import Synchronization

/// An interceptor that takes effect.
public struct InterceptorStatus: Sendable, Equatable {
    /// Which calls it sees.
    public var scope: InterceptionScope
    /// The higher one is outside.
    public var priority: Int
    /// The module that it lives in; nil for code of the program.
    public var module: String?
    /// What the module calls it; nil for code of the program.
    public var name: String?
    /// Whether no module offers it now. Calls are refused then, unless its rule is optional.
    public var isMissing: Bool
    /// How many calls have passed their deadline while its own code ran.
    public var overruns: Int
    /// Target and action of the last of them.
    public var lastOverrun: String?
    /// Target and action of the calls in which its own code runs now, past their deadline.
    public var overdueCalls: [String]
}

/// Whose code runs in intercepted calls that have a deadline, and who has let one pass.
final class InterceptorTimes: Sendable {
    private struct Running {
        let interceptor: UInt64
        let call: String
        let deadline: Int64
    }

    private struct State {
        /// By the token of the intercepted call.
        var running: [plugin_token: Running] = [:]
        var overruns: [UInt64: (count: Int, last: String)] = [:]
    }
    private let state = Mutex(State())

    /// Notes whose code runs from now on in a call; nil for nobody's.
    func note(_ interceptor: UInt64?, in call: String, _ token: plugin_token, deadline: Int64) {
        guard deadline != 0 else { return }
        state.withLock {
            $0.running[token] = interceptor.map { Running(interceptor: $0, call: call, deadline: deadline) }
        }
    }

    func noteOverrun(of interceptor: UInt64, in call: String) {
        state.withLock { $0.overruns[interceptor] = (($0.overruns[interceptor]?.count ?? 0) + 1, call) }
    }

    func forget(_ interceptor: UInt64) { state.withLock { $0.overruns[interceptor] = nil } }

    func times(of interceptor: UInt64, now: Int64) -> (overruns: Int, last: String?, overdue: [String]) {
        state.withLock { state in
            let overdue = state.running.values.filter { $0.interceptor == interceptor && $0.deadline < now }
            let past = state.overruns[interceptor]
            return (past?.count ?? 0, past?.last, overdue.map(\.call).sorted())
        }
    }
}
