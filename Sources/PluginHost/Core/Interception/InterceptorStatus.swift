import PluginABI
import Synchronization

/// The status of an interceptor that is in effect.
public struct InterceptorStatus: Sendable, Equatable {
    /// The calls that the interceptor sees.
    public var scope: InterceptionScope
    /// The priority; interceptors with a higher one are further out.
    public var priority: Int
    /// The module that offers the interceptor; `nil` for code of the program.
    public var module: String?
    /// The name of the interceptor in the module; `nil` for code of the program.
    public var name: String?
    /// Whether no module currently offers the interceptor. Calls are then refused, unless its rule is optional.
    public var isMissing: Bool
    /// The number of calls that passed their deadline while the interceptor's own code ran.
    public var overruns: Int
    /// The target and the action of the last of those calls.
    public var lastOverrun: String?
    /// The target and the action of each call that is past its deadline while the interceptor's own code is running.
    public var overdueCalls: [String]
}

/// Records, for intercepted calls with a deadline, which interceptor's code is running, and which interceptors let a
/// deadline pass.
final class InterceptorTimes: Sendable {
    private struct Running {
        let interceptor: UInt64
        let call: String
        let deadline: Int64
    }

    private struct State {
        /// The running interceptors by the token of the intercepted call.
        var running: [plugin_token: Running] = [:]
        var overruns: [UInt64: (count: Int, last: String)] = [:]
    }
    private let state = Mutex(State())

    /// Records which interceptor's code runs in a call from now on; `nil` for none.
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
