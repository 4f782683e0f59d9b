import CPluginABI
import CPluginHost
import Foundation
import PluginABI
import Synchronization

/// The state of one host that its calls, its modules and its navigation share.
final class HostCore: Sendable {
    let registry = Registry()
    let settings: Settings
    let profiler = Profiler()
    /// What is counted of calls.
    let statistics = Statistics()
    /// The names that callers have bound.
    let boundActions = BoundActions()
    /// Asked before every call that comes from another program.
    let remoteGuard = Mutex<RemoteGuard?>(nil)
    /// The configuration of each module, by its name.
    let moduleConfiguration = Mutex<[String: Value]>([:])
    /// Whether there are interceptors, for calls that need no table.
    let isIntercepting = Atomic(false)
    /// Which interceptors run past deadlines.
    let interceptorTimes = InterceptorTimes()
    /// What stands in for targets that no module offers.
    let noTargetHandler = Mutex<Callback?>(nil)
    /// The subscriptions of the program, and the sticky events.
    let events = EventBoard()
    /// The program's handlers of events that run up the chain.
    let chainHandlers = ChainHandlers()
    /// The context that every module reads, in the form of the binary interface.
    let context: plugin_value
    /// Makes the table of functions by which a generation calls the host.
    let makeHostTable: @Sendable (Generation) -> UnsafePointer<plugin_host>

    /// The program as a caller, and the owner of its callbacks. Set in init, and never again.
    private(set) nonisolated(unsafe) var program: Generation!
    /// The host's own actions. Set once, by whoever makes the core.
    nonisolated(unsafe) var ownActions: OwnActions!

    struct Settings: Sendable {
        /// The schemes of URLs that address `scheme://target/action`, in lower case.
        var schemes: Set<String>
        /// The time that an asynchronous call has when its caller sets none, in nanoseconds.
        var asyncTimeout: Int64
        /// The length of a URL at most, in bytes.
        var longestURL = URLText.defaultLength
        /// The context that every module reads: a map.
        var context: Value = [:]
        var log: @Sendable (LogEntry) -> Void
    }

    /// Endpoints of the program that the call path itself calls, so that deadlines, cancellation and records are those of
    /// every call.
    struct OwnActions {
        /// Waits for a service.
        let serviceWaiter: Endpoint
        /// Send events up the chain: for callers that wait for asynchronous handlers, and for others.
        let emission: (synchronous: Endpoint, asynchronous: Endpoint)
        /// What calls wait in while their module hands its state over.
        let waitingCalls: Endpoint
        /// What the record of an event shows while it is on its way; never invoked.
        let posting: Unmanaged<Endpoint>
    }

    init(_ settings: Settings, hostTable: @escaping @Sendable (Generation) -> UnsafePointer<plugin_host>) {
        self.settings = settings
        makeHostTable = hostTable
        context = .immortal(settings.context)
        program = Generation(programOf: self)
    }
}

extension Generation {
    /// Whether this is the program itself, whose values need no checking.
    var isProgram: Bool { number == 0 }

    /// The name that errors and log lines carry; nil for the program itself.
    var sourceName: String? { isProgram ? nil : name }
}
