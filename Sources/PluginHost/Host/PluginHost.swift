import CPluginHost
import FoundationEssentials
public import PluginABI
import Synchronization

/// A host of plugin modules: loads the shared libraries in its folders, and calls their actions.
///
///     let host = PluginHost(.init(folders: ["plugins"]))
///     try host.start()
///     let detail = try host.perform("A", "fetchDetail", ["key": "42"])
///     host.shutdown()
///
/// A module is code with the rights of the program: the host protects against accidents, not against malice. All
/// functions may be called from any thread. A program may have several hosts.
public final class PluginHost: Sendable {
    /// The configuration of a host.
    public typealias Configuration = HostConfiguration

    /// The configuration that the host was made with.
    public let configuration: Configuration
    let core: HostCore
    let lifecycle: Lifecycle
    /// The program as a caller, with the same table of functions that modules get.
    let program: HostContext

    /// Makes a host. It does nothing before ``start()``.
    public init(_ configuration: Configuration) {
        self.configuration = configuration
        core = Calls.makeCore(
            .init(
                schemes: Set(configuration.schemes.map { $0.lowercased() }), firstScheme: configuration.firstScheme,
                asyncTimeout: configuration.asyncTimeout.nanoseconds,
                startTimeout: configuration.hookTimeout, waitingCallsLimit: configuration.waitingCallsLimit,
                longestURL: min(
                    max(configuration.maximumURLLength, URLText.lengths.lowerBound), URLText.lengths.upperBound),
                context: HostInformation(
                    environment: configuration.environment, arguments: configuration.arguments,
                    launchTime: Date.now.timeIntervalSince1970, values: configuration.context
                ).value, log: configuration.log))
        lifecycle = Lifecycle(configuration, core)
        program = HostContext(host: core.program.hostTable)
        core.moduleConfiguration.withLock { $0 = configuration.moduleConfiguration }
        if !configuration.interceptors.isEmpty { calls.setInterceptors(configuration.interceptors) }
    }

    /// The call path.
    var calls: Calls { Calls(core) }

    /// The program as a caller in a task: calls of an interceptor are made on behalf of the call that it intercepts.
    private var programInTask: HostContext {
        HostContext(host: core.program.hostTable, call: InterceptedTask.call)
    }

    deinit { shutdown() }

    /// Activates the modules that are linked into the program, loads and activates the modules in the folders, and
    /// watches the folders from then on.
    ///
    /// A file that cannot be loaded does not affect the others: ``modules`` lists it with its error. A folder that
    /// cannot be read is listed in ``problems``. Starting a second time does nothing.
    ///
    /// - Throws: ``/PluginABI/PluginError/Code/stagingFailed`` if there is no folder for the staged copies;
    ///   ``/PluginABI/PluginError/Code/invalidConfiguration`` if the route of an interceptor is not a valid pattern, or
    ///   a setting is out of range; ``/PluginABI/PluginError/Code/hostStopped`` after ``shutdown()``.
    public func start() throws(PluginError) {
        for rule in configuration.interceptors { try rule.check(scheme: configuration.firstScheme) }
        guard URLText.lengths.contains(configuration.maximumURLLength) else {
            throw PluginError(
                .invalidConfiguration,
                "The setting maximumURLLength is \(configuration.maximumURLLength). It must be "
                    + "\(URLText.lengths.lowerBound) to \(URLText.lengths.upperBound) bytes.")
        }
        try requireRest()
        try lifecycle.start()
    }

    private func requireRest() throws(PluginError) {
        guard let time = configuration.isolation.restAfter else { return }
        guard time >= .seconds(1) else {
            throw PluginError(
                .invalidConfiguration,
                "The setting isolation.restAfter is \(time). It must be at least 1 second, or nil: modules are then never "
                    + "put to rest.")
        }
        guard configuration.start == .lazy else {
            throw PluginError(
                .invalidConfiguration,
                "The setting isolation.restAfter is \(time), but modules are put to rest only if they start when they are "
                    + "needed. Set start to .lazy (--lazy), or omit restAfter.")
        }
    }

    /// Shuts the host down: accepts no new calls, then runs each module's `tearDown` after its last call, in reverse
    /// order. Blocks until that is done, or the timeout has passed. From then on calls end with
    /// ``/PluginABI/PluginError/Code/hostStopped``.
    public func shutdown() { lifecycle.stop() }
}

// MARK: Calls

extension PluginHost {
    /// Calls a synchronous action and returns its result.
    ///
    /// - Parameters:
    ///   - target: The name of the target.
    ///   - action: The name of the action.
    ///   - parameters: Parameters by name or by position. For many calls with the same parameters, make them once.
    ///   - timeout: The time that the call may take. Code is never interrupted: a call that takes longer ends with
    ///     ``/PluginABI/PluginError/Code/deadlineExceeded`` when it returns. Default: none.
    /// - Throws: The error of the host or the action; ``/PluginABI/PluginError/Code/asynchronousAction`` for an
    ///   asynchronous action.
    @discardableResult
    public func perform(
        _ target: String, _ action: String, _ parameters: Parameters = [:], timeout: Duration? = nil
    ) throws(PluginError) -> Value {
        try program.perform(target, action, parameters, timeout: timeout)
    }

    /// Calls an action, synchronous or asynchronous, without blocking a thread until it replies.
    ///
    /// The action begins on the caller's actor: a synchronous action runs there to its end, an asynchronous one until
    /// it suspends for the first time.
    ///
    /// - Parameters:
    ///   - target: The name of the target.
    ///   - action: The name of the action.
    ///   - parameters: Parameters by name or by position.
    ///   - timeout: The time after which the call ends with ``/PluginABI/PluginError/Code/deadlineExceeded``; the
    ///     action itself is notified and continues. Default: ``HostConfiguration/asyncTimeout``, for asynchronous
    ///     actions.
    /// - Throws: The error of the host or the action; ``/PluginABI/PluginError/Code/cancelled`` if this task is
    ///   cancelled.
    @discardableResult
    public func call(
        _ target: String, _ action: String, _ parameters: Parameters = [:], timeout: Duration? = nil
    ) async throws(PluginError) -> Value {
        // No asynchronous helper is called in between, because each asynchronous function takes memory of the task.
        let pending = try programInTask.start(target, action, parameters, timeout: timeout)
        if let outcome = pending.earlyOutcome { return try outcome.get() }
        return try await pending.lateOutcome()
    }

    /// Calls an action, synchronous or asynchronous, and blocks this thread until it replies.
    ///
    /// - Parameters:
    ///   - target: The name of the target.
    ///   - action: The name of the action.
    ///   - parameters: Parameters by name or by position.
    ///   - timeout: The time after which the call ends with ``/PluginABI/PluginError/Code/deadlineExceeded``.
    /// - Throws: The error of the host or the action; ``/PluginABI/PluginError/Code/blockingInTask`` inside a Swift
    ///   task, where blocking can stop the whole program.
    @discardableResult
    public func performAndWait(
        _ target: String, _ action: String, _ parameters: Parameters = [:], timeout: Duration
    ) throws(PluginError) -> Value {
        try program.performAndWait(target, action, parameters, timeout: timeout)
    }

    /// Binds an action for repeated calls: its names are resolved once, and again when the modules have changed. See
    /// ``/PluginABI/BoundAction``.
    ///
    /// - Parameters:
    ///   - target: The name of the target. Its module need not exist yet.
    ///   - action: The name of the action.
    public func bind(_ target: String, _ action: String) -> BoundAction { program.bind(target, action) }

    /// Opens a URL, `scheme://target/action?name=value`.
    ///
    /// - Parameters:
    ///   - url: A URL whose scheme is one of ``HostConfiguration/schemes``.
    ///   - parameters: Values of any kind, which have precedence over those in the URL.
    ///   - origin: ``/PluginABI/CallOrigin/remote`` for a URL from outside the program, which reaches remote actions
    ///     only.
    ///   - timeout: The timeout, as for ``call(_:_:_:timeout:)``.
    /// - Throws: ``/PluginABI/PluginError/Code/invalidURL``; the errors of ``call(_:_:_:timeout:)``.
    @discardableResult
    public func open(
        _ url: String, _ parameters: Parameters = [:], origin: CallOrigin = .local, timeout: Duration? = nil
    ) async throws(PluginError) -> Value {
        try await programInTask.open(url, parameters, origin: origin, timeout: timeout)
    }

    /// Opens a URL that addresses a synchronous action.
    ///
    /// - Parameters:
    ///   - url: A URL whose scheme is one of ``HostConfiguration/schemes``.
    ///   - parameters: Values of any kind, which have precedence over those in the URL.
    ///   - origin: ``/PluginABI/CallOrigin/remote`` for a URL from outside the program.
    ///   - timeout: The timeout, as for ``perform(_:_:_:timeout:)``.
    /// - Throws: ``/PluginABI/PluginError/Code/invalidURL``; the errors of ``perform(_:_:_:timeout:)``.
    @discardableResult
    public func open(
        _ url: String, _ parameters: Parameters = [:], origin: CallOrigin = .local, timeout: Duration? = nil
    ) throws(PluginError) -> Value {
        try program.open(url, parameters, origin: origin, timeout: timeout)
    }

    /// Opens a URL with an HTTP method: routes of other methods do not answer. Without a method, a URL is opened with
    /// ``/PluginABI/RouteMethod/get``.
    ///
    /// - Parameters:
    ///   - url: A URL whose scheme is one of ``HostConfiguration/schemes``.
    ///   - method: The method.
    ///   - parameters: Values of any kind, which have precedence over those in the URL.
    ///   - origin: ``/PluginABI/CallOrigin/remote`` for a URL from outside the program.
    ///   - timeout: The timeout, as for ``call(_:_:_:timeout:)``.
    /// - Throws: ``/PluginABI/PluginError/Code/methodNotAllowed`` if the URL matches routes of other methods only
    ///   (``resolve(_:method:_:origin:)`` lists them); the errors of `open` without a method.
    @discardableResult
    public func open(
        _ url: String, method: RouteMethod, _ parameters: Parameters = [:], origin: CallOrigin = .local,
        timeout: Duration? = nil
    ) async throws(PluginError) -> Value {
        try await programInTask.open(url, method: method, parameters, origin: origin, timeout: timeout)
    }

    /// Opens, with an HTTP method, a URL that addresses a synchronous action. For the parameters, see the asynchronous
    /// form.
    @discardableResult
    public func open(
        _ url: String, method: RouteMethod, _ parameters: Parameters = [:], origin: CallOrigin = .local,
        timeout: Duration? = nil
    ) throws(PluginError) -> Value {
        try program.open(url, method: method, parameters, origin: origin, timeout: timeout)
    }

    /// Makes a callback from a closure, to pass to a module. It runs on the thread that calls it, possibly
    /// concurrently.
    public func callback(_ body: @escaping @Sendable (_ arguments: [Value]) throws -> Value) -> Callback {
        program.callback(body)
    }

    /// Makes a callback from an asynchronous closure.
    public func callback(_ body: @escaping @Sendable (_ arguments: [Value]) async throws -> Value) -> Callback {
        program.callback(body)
    }
}

// MARK: Modules

extension PluginHost {
    /// The status of every module file. First come the modules that the program has registered, whose file is
    /// `(program)`, and those that are linked into it, whose file is `(linked) NAME`; then the files in the folders,
    /// sorted by path.
    public var modules: [ModuleStatus] { lifecycle.modules }

    /// The problems with the folders, and with the resources that the host itself needs.
    public var problems: [PluginError] { lifecycle.problems }

    /// The ``problems`` that the host has not written to its log.
    package var unloggedProblems: [PluginError] { lifecycle.unloggedProblems }

    /// Replaces the configuration of modules, ``HostConfiguration/moduleConfiguration``. A module that asks for its
    /// configuration from now on gets the new one. ``HostChange/configurationChanged(_:)`` names the modules whose
    /// configuration has changed, and so does the event `configuration.changed` in its parameter `modules`.
    public func updateConfiguration(_ modules: [String: Value]) {
        let changed = core.moduleConfiguration.withLock { present in
            defer { present = modules }
            return Set(present.keys).union(modules.keys).filter { (present[$0] ?? [:]) != (modules[$0] ?? [:]) }
        }
        guard !changed.isEmpty else { return }
        let names = changed.sorted()
        lifecycle.announcements.tell(.configurationChanged(names))
        lifecycle.announcements.announce("configuration.changed") { [calls] in
            calls.postHostEvent("configuration.changed", ["modules": .list(names.map(Value.string))])
        }
    }

    /// The changes of modules from now on, as an asynchronous sequence. It ends when the host is shut down or released.
    /// A sequence that is made before ``start()`` gets the changes of the start as well, while that runs.
    ///
    ///     for await change in host.changes {
    ///         if case .replaced(let module, let before) = change { print(module.file, before.version) }
    ///     }
    ///
    /// Each read of this property makes a new sequence, which gets all changes. Up to 1,000 of them wait to be read;
    /// further ones are dropped, and ``HostChange/missed(_:)`` takes their place and states their number.
    public var changes: AsyncStream<HostChange> { lifecycle.announcements.changes() }

    /// Installs a report for fatal signals and for exits: if this program crashes, or code of a module ends it by
    /// `exit`, `_exit`, `_Exit` or `quick_exit`, the report on standard error names the module and action that were
    /// running. The exit code stays that of the module. If code other than an action ends the program while its module
    /// is being started, the exit code is 70. For programs; call this once, early (a program that forks to become a
    /// daemon may do so afterwards, before it starts a host).
    public static func installFatalSignalReport() {
        plugin_host_install_fatal_signal_report()
        plugin_host_report_exits()
    }
}
