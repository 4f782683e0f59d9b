import CPluginHost
import Foundation
public import PluginABI
import PluginFile
import Synchronization

/// A host of plugin modules: loads the shared libraries in its folders, and calls what they offer.
///
///     let host = PluginHost(.init(folders: ["plugins"]))
///     try host.start()
///     let detail = try host.perform("A", "fetchDetail", ["key": "42"])
///     host.shutdown()
///
/// A module is code with the rights of the program; the host keeps accidents away, not malice. All functions may be
/// called from any thread. A program may have several hosts.
public final class PluginHost: Sendable {
    /// What a host is told before it starts.
    public typealias Configuration = HostConfiguration

    /// What the host was told when it was made.
    public let configuration: Configuration
    let core: HostCore
    let lifecycle: Lifecycle
    /// The program as a caller: the same table of functions that modules get.
    let program: HostContext

    /// Makes a host that does nothing yet.
    public init(_ configuration: Configuration) {
        self.configuration = configuration
        core = Calls.makeCore(
            .init(
                schemes: Set(configuration.schemes.map { $0.lowercased() }),
                asyncTimeout: configuration.asyncTimeout.nanoseconds,
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

    /// The same in a task: an interceptor's calls are made for the call that it is put around.
    private var programInTask: HostContext {
        HostContext(host: core.program.hostTable, call: InterceptedTask.call)
    }

    deinit { shutdown() }

    /// Activates the modules that are linked into the program, loads what is in the folders and activates it, and
    /// watches the folders from then on.
    ///
    /// A file that cannot be loaded does not keep others from it: it stands in ``modules`` with its error. A folder
    /// that cannot be read stands in ``problems``. Starting twice does nothing.
    ///
    /// - Throws: ``/PluginABI/PluginError/Code/stagingFailed`` when there is no place for the copies that are opened;
    ///   ``/PluginABI/PluginError/Code/invalidConfiguration`` when an interceptor stands around a route that is no
    ///   pattern, or a setting is out of its range; ``/PluginABI/PluginError/Code/hostStopped`` after ``shutdown()``.
    public func start() throws(PluginError) {
        for rule in configuration.interceptors { try rule.check() }
        guard URLText.lengths.contains(configuration.maximumURLLength) else {
            throw PluginError(
                .invalidConfiguration,
                "The setting maximumURLLength is \(configuration.maximumURLLength). It must be "
                    + "\(URLText.lengths.lowerBound) to \(URLText.lengths.upperBound) bytes.")
        }
        try lifecycle.start()
    }

    /// Ends: no new calls, then each module's `tearDown` in reverse order, after its last call. Blocks until that is
    /// done, or the timeout has passed. From then on calls end with ``/PluginABI/PluginError/Code/hostStopped``.
    public func shutdown() { lifecycle.stop() }
}

// MARK: Calls

extension PluginHost {
    /// Calls a synchronous action and returns its result.
    ///
    /// - Parameters:
    ///   - target: The name of the target.
    ///   - action: The name of the action.
    ///   - parameters: By name or by position. Make them once to call many times.
    ///   - timeout: The time that the call may take. Code is never interrupted: a call that took longer ends with
    ///     ``/PluginABI/PluginError/Code/deadlineExceeded`` when it returns. Default: none.
    /// - Throws: What the host or the action says; ``/PluginABI/PluginError/Code/asynchronousAction`` for an
    ///   asynchronous action.
    @discardableResult
    public func perform(
        _ target: String, _ action: String, _ parameters: Parameters = [:], timeout: Duration? = nil
    ) throws(PluginError) -> Value {
        try program.perform(target, action, parameters, timeout: timeout)
    }

    /// Calls an action, synchronous or asynchronous, without blocking a thread until it replies.
    ///
    /// It begins where the caller is, on its actor: a synchronous action runs there to its end, an asynchronous one until
    /// it waits for the first time.
    ///
    /// - Parameters:
    ///   - target: The name of the target.
    ///   - action: The name of the action.
    ///   - parameters: By name or by position.
    ///   - timeout: The time until the call ends with ``/PluginABI/PluginError/Code/deadlineExceeded``; the action
    ///     itself is told and goes on. Default: ``HostConfiguration/asyncTimeout``, for asynchronous actions.
    /// - Throws: What the host or the action says; ``/PluginABI/PluginError/Code/cancelled`` when this task is
    ///   cancelled.
    @discardableResult
    public func call(
        _ target: String, _ action: String, _ parameters: Parameters = [:], timeout: Duration? = nil
    ) async throws(PluginError) -> Value {
        // Not by way of another function that awaits: each costs memory of the task's.
        let pending = try programInTask.start(target, action, parameters, timeout: timeout)
        if let outcome = pending.earlyOutcome { return try outcome.get() }
        return try await pending.lateOutcome()
    }

    /// Calls an action, synchronous or asynchronous, and blocks this thread until it replies.
    ///
    /// - Parameters:
    ///   - target: The name of the target.
    ///   - action: The name of the action.
    ///   - parameters: By name or by position.
    ///   - timeout: The time until the call ends with ``/PluginABI/PluginError/Code/deadlineExceeded``.
    /// - Throws: What the host or the action says; ``/PluginABI/PluginError/Code/blockingInTask`` inside a Swift task,
    ///   where blocking can stop the whole program.
    @discardableResult
    public func performAndWait(
        _ target: String, _ action: String, _ parameters: Parameters = [:], timeout: Duration
    ) throws(PluginError) -> Value {
        try program.performAndWait(target, action, parameters, timeout: timeout)
    }

    /// Binds an action, for calls that are made many times: its names are resolved once, and again when the modules have
    /// changed. See ``/PluginABI/BoundAction``.
    ///
    /// - Parameters:
    ///   - target: The name of the target, also of a module that is not there yet.
    ///   - action: The name of the action.
    public func bind(_ target: String, _ action: String) -> BoundAction { program.bind(target, action) }

    /// Opens a URL, `scheme://target/action?name=value`.
    ///
    /// - Parameters:
    ///   - url: Its scheme is one of ``HostConfiguration/schemes``.
    ///   - parameters: Values of any kind that stand before those of the URL.
    ///   - origin: ``/PluginABI/CallOrigin/remote`` for a URL that came from outside the program: it reaches remote
    ///     actions only.
    ///   - timeout: As for ``call(_:_:_:timeout:)``.
    /// - Throws: ``/PluginABI/PluginError/Code/invalidURL``, or as ``call(_:_:_:timeout:)``.
    @discardableResult
    public func open(
        _ url: String, _ parameters: Parameters = [:], origin: CallOrigin = .local, timeout: Duration? = nil
    ) async throws(PluginError) -> Value {
        try await programInTask.open(url, parameters, origin: origin, timeout: timeout)
    }

    /// Opens a URL that addresses a synchronous action.
    ///
    /// - Parameters:
    ///   - url: Its scheme is one of ``HostConfiguration/schemes``.
    ///   - parameters: Values of any kind that stand before those of the URL.
    ///   - origin: ``/PluginABI/CallOrigin/remote`` for a URL that came from outside the program.
    ///   - timeout: As for ``perform(_:_:_:timeout:)``.
    /// - Throws: ``/PluginABI/PluginError/Code/invalidURL``, or as ``perform(_:_:_:timeout:)``.
    @discardableResult
    public func open(
        _ url: String, _ parameters: Parameters = [:], origin: CallOrigin = .local, timeout: Duration? = nil
    ) throws(PluginError) -> Value {
        try program.open(url, parameters, origin: origin, timeout: timeout)
    }

    /// Makes a callback of a closure, to be passed to a module. It runs on the thread that calls it, also concurrently.
    public func callback(_ body: @escaping @Sendable (_ arguments: [Value]) throws -> Value) -> Callback {
        program.callback(body)
    }

    /// Makes a callback of an asynchronous closure.
    public func callback(_ body: @escaping @Sendable (_ arguments: [Value]) async throws -> Value) -> Callback {
        program.callback(body)
    }

    /// Sets what stands in for targets that no module offers; nil takes it away.
    ///
    /// It gets the names and the parameters, by name, and where the call comes from. Its result is the call's.
    public func onMissingTarget(
        _ handler: (
            @Sendable (_ target: String, _ action: String, _ parameters: [String: Value], _ origin: CallOrigin) throws
                -> Value
        )?
    ) {
        let callback = handler.map { handler in
            program.callback { arguments throws -> Value in
                try handler(
                    arguments[0].string ?? "", arguments[1].string ?? "", arguments[2].map ?? [:],
                    arguments[3].bool == true ? .remote : .local)
            }
        }
        core.noTargetHandler.withLock { $0 = callback }
    }
}

// MARK: What is there

extension PluginHost {
    /// Every file in the folders, sorted by path: what is active, and what is not and why. Before them, modules that the
    /// program has registered, whose file is `(program)`, and those that are linked into it, `(linked) NAME`.
    public var modules: [ModuleStatus] { lifecycle.modules }

    /// What is wrong with the folders, and with what the host needs itself.
    public var problems: [PluginError] { lifecycle.problems }

    /// What the host has not written to its log of them.
    package var unloggedProblems: [PluginError] { lifecycle.unloggedProblems }

    /// Replaces what modules are told, in place of ``HostConfiguration/moduleConfiguration``. A module that asks from now on
    /// gets what is new; ``HostChange/configurationChanged(_:)`` names the modules that are concerned, and so does the
    /// event `configuration.changed` in its parameter `modules`.
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

    /// Tells which files of routes and services a change has displaced.
    func tellRouteProblems() { lifecycle.tellDeclarationProblems() }

    /// What happens to the modules from now on, as an asynchronous sequence. It ends when the host is shut down, and is
    /// empty before ``start()``.
    ///
    ///     for await change in host.changes {
    ///         if case .replaced(let module, let before) = change { print(module.file, before.version) }
    ///     }
    ///
    /// Each who asks gets all of it; what nobody has taken yet is kept in memory until the sequence is let go.
    public var changes: AsyncStream<HostChange> { lifecycle.announcements.changes() }

    /// Makes a fatal signal (a crash of this program) say on standard error which module and action was running, before
    /// the process dies of it. For programs; call it once, early.
    public static func installFatalSignalReport() {
        plugin_host_install_fatal_signal_report()
        plugin_host_report_exits()
    }
}
