import PluginABI
import Synchronization

/// The state of one host that its calls, its modules and its navigation share.
final class HostCore: Sendable {
    let registry = Registry()
    let settings: Settings
    let profiler = Profiler()
    /// The call statistics.
    let statistics = Statistics()
    /// The names that callers have bound.
    let boundActions = BoundActions()
    /// The starts of registered modules.
    let starter: ModuleStarter
    /// The guard that is asked before every call from another program.
    let remoteGuard = Mutex<RemoteGuardForms?>(nil)
    /// The configuration of each module, by its name.
    let moduleConfiguration = Mutex<[String: Value]>([:])
    /// Whether there are interceptors; for calls that do not read the table.
    let isIntercepting = Atomic(false)
    /// The interceptors that run past deadlines.
    let interceptorTimes = InterceptorTimes()
    /// The program's fallback for targets and actions that no module offers.
    let missingTargetHandler = Mutex<MissingTargetHandler?>(nil)
    /// The types of the program's objects.
    let programTypes = ProgramTypes()
    /// The subscriptions of the program, and the sticky events.
    let events = EventBoard()
    /// The program's handlers of events that bubble up the chain.
    let chainHandlers = ChainHandlers()
    /// The navigators that show the pages of routes with a transition.
    let routeNavigators = RouteNavigators()
    /// The context that every module reads, in the form of the binary interface.
    let context: plugin_value
    /// Creates the table of functions by which a generation calls the host.
    let makeHostTable: @Sendable (Generation) -> UnsafePointer<plugin_host>

    /// The program as a caller and the owner of its callbacks. Set once, in init.
    private(set) nonisolated(unsafe) var program: Generation!
    /// The host's own actions. Set once, by the creator of the core.
    nonisolated(unsafe) var ownActions: OwnActions!

    struct Settings: Sendable {
        /// The schemes of URLs that address `scheme://target/action`, in lower case.
        var schemes: Set<String>
        /// The scheme of URLs and patterns that are written without one, in lower case; `nil` if they are refused.
        var firstScheme: String?
        /// The timeout of an asynchronous call whose caller sets none, in nanoseconds.
        var asyncTimeout: Int64
        /// How long a call without a timeout waits for the start of a module.
        var startTimeout = Duration.seconds(30)
        /// The maximum number of calls that wait for the start of one module.
        var waitingCallsLimit = 10_000
        /// The maximum length of a URL, in bytes.
        var longestURL = URLText.defaultLength
        /// The context that every module reads: a map.
        var context: Value = [:]
        var log: @Sendable (LogEntry) -> Void
    }

    /// Endpoints of the program that the call path itself calls, so that deadlines, cancellation and records work as
    /// for any other call.
    struct OwnActions {
        /// Waits for a service.
        let serviceWaiter: Endpoint
        /// The endpoints that emit events up the chain: `asynchronous` for callers that wait for asynchronous handlers,
        /// `synchronous` for others.
        let emission: (synchronous: Endpoint, asynchronous: Endpoint)
        /// Shows the page of a URL from outside.
        let routePage: Endpoint
        /// The endpoint in which calls wait while their module hands over its state.
        let waitingCalls: Endpoint
        /// The endpoint in which calls wait while their module is being started.
        let startingCalls: Endpoint
        /// The endpoint in which remote calls wait for the asynchronous form of the guard.
        let guardedCalls: Endpoint
        /// The endpoint in the record of an event while it is being delivered; never invoked.
        let posting: Unmanaged<Endpoint>
        /// The endpoint in the record of a call with a context, within which the program makes calls; never invoked.
        let rootCall: Unmanaged<Endpoint>
    }

    init(_ settings: Settings, hostTable: @escaping @Sendable (Generation) -> UnsafePointer<plugin_host>) {
        self.settings = settings
        starter = ModuleStarter(limit: settings.waitingCallsLimit)
        makeHostTable = hostTable
        context = .immortal(settings.context)
        program = Generation(programOf: self)
    }
}

extension Generation {
    /// Whether this is the program itself, whose values need no check.
    var isProgram: Bool { number == 0 }

    /// The name of the module in errors and log lines; `nil` for the program itself.
    var sourceName: String? { isProgram ? nil : name }
}
