/// The host as seen from one call: an action calls other modules through it.
///
/// An action gets it by declaring `.context()` among its inputs. The context can be kept, and used later and from any
/// thread. The call that it belongs to is the parent of the calls made through it: the host detects endless recursion
/// and circular waits among them, and can show which action made a call.
public struct HostContext: Sendable {
    /// The host's table, which lives as long as the process.
    @usableFromInline nonisolated(unsafe) let host: UnsafePointer<plugin_host>
    /// The call that the context belongs to; 0 if there is none.
    public let call: plugin_token
    /// The flags of every call made through the context: `PLUGIN_REQUEST_FRESH`, or none.
    var requestFlags: UInt32 = 0

    /// Makes a context from the host's table and the current call, for modules that are written against the header.
    public init(host: UnsafePointer<plugin_host>, call: plugin_token = 0) {
        self.host = host
        self.call = call
    }
}

// MARK: Calling others

extension HostContext {
    /// Calls a synchronous action and returns its result.
    ///
    /// - Parameters:
    ///   - target: The name of the target, of any module.
    ///   - action: The name of the action.
    ///   - parameters: By name or by position.
    ///   - timeout: The time that the call may take. Code is never interrupted: a call that takes longer ends with
    ///     ``PluginError/Code/deadlineExceeded`` when it returns. Default: none.
    /// - Throws: The error of the host or the action; ``PluginError/Code/asynchronousAction`` for an asynchronous
    ///   action.
    @discardableResult
    public func perform(
        _ target: String, _ action: String, _ parameters: Parameters = [:], timeout: Duration? = nil
    ) throws(PluginError) -> Value {
        try perform(.action(target, action), parameters, timeout: timeout)
    }

    /// Calls an action, synchronous or asynchronous, and waits for its result without blocking a thread.
    ///
    /// The action begins on the caller's actor: a synchronous action runs there to its end, an asynchronous one until
    /// it suspends for the first time.
    ///
    /// - Parameters:
    ///   - target: The name of the target, of any module.
    ///   - action: The name of the action.
    ///   - parameters: By name or by position.
    ///   - timeout: The time after which the call ends with ``PluginError/Code/deadlineExceeded``; the action itself is
    ///     notified and continues. Default: the host's timeout, for asynchronous actions.
    /// - Throws: The error of the host or the action; ``PluginError/Code/cancelled`` if this task is cancelled.
    @discardableResult
    public func call(
        _ target: String, _ action: String, _ parameters: Parameters = [:], timeout: Duration? = nil
    ) async throws(PluginError) -> Value {
        try await call(.action(target, action), parameters, timeout: timeout)
    }

    /// Calls an action, synchronous or asynchronous, and blocks this thread until it replies.
    ///
    /// - Parameters:
    ///   - target: The name of the target, of any module.
    ///   - action: The name of the action.
    ///   - parameters: By name or by position.
    ///   - timeout: The time after which the call ends with ``PluginError/Code/deadlineExceeded``.
    /// - Throws: The error of the host or the action; ``PluginError/Code/blockingInTask`` inside a Swift task, where
    ///   blocking can stop the whole program.
    @discardableResult
    public func performAndWait(
        _ target: String, _ action: String, _ parameters: Parameters = [:], timeout: Duration
    ) throws(PluginError) -> Value {
        try wait(for: .action(target, action), parameters, timeout: timeout)
    }

    /// Opens a URL that addresses a synchronous action. See ``perform(_:_:_:timeout:)``.
    ///
    /// - Parameters:
    ///   - url: A URL, `scheme://target/action?name=value`, with a scheme that the program accepts.
    ///   - parameters: Values of any kind, which have precedence over those in the URL.
    ///   - origin: ``CallOrigin/remote`` for a URL that came from outside the program.
    ///   - timeout: The time that the call may take. Default: none.
    @discardableResult
    public func open(
        _ url: String, _ parameters: Parameters = [:], origin: CallOrigin = .local, timeout: Duration? = nil
    ) throws(PluginError) -> Value {
        try perform(.url(url), parameters, origin: origin, timeout: timeout)
    }

    /// Opens a URL with an HTTP method: routes with other methods do not match. Without a method, as in
    /// `open(_:_:origin:timeout:)`, a URL is opened with ``RouteMethod/get``.
    ///
    /// - Throws: The errors of `open`; ``PluginError/Code/methodNotAllowed`` if the URL matches routes of other methods
    ///   only.
    @discardableResult
    public func open(
        _ url: String, method: RouteMethod, _ parameters: Parameters = [:], origin: CallOrigin = .local,
        timeout: Duration? = nil
    ) throws(PluginError) -> Value {
        try perform(.url(url), parameters, origin: origin, timeout: timeout, method: method)
    }

    /// Opens a URL with an HTTP method, without blocking a thread.
    @discardableResult
    public func open(
        _ url: String, method: RouteMethod, _ parameters: Parameters = [:], origin: CallOrigin = .local,
        timeout: Duration? = nil
    ) async throws(PluginError) -> Value {
        try await call(.url(url), parameters, origin: origin, timeout: timeout, method: method)
    }

    /// Opens a URL that addresses an action, synchronous or asynchronous. See ``call(_:_:_:timeout:)``.
    @discardableResult
    public func open(
        _ url: String, _ parameters: Parameters = [:], origin: CallOrigin = .local, timeout: Duration? = nil
    ) async throws(PluginError) -> Value {
        try await call(.url(url), parameters, origin: origin, timeout: timeout)
    }

    /// Opens a URL whose action returns an object. If the action declares a parameter `_object`, its value is true, and
    /// the action can thus see that the caller expects an object.
    ///
    /// - Throws: The errors of `open`; ``PluginError/Code/invalidResult`` if the result is not an object.
    public func object(
        for url: String, _ parameters: Parameters = [:], origin: CallOrigin = .local, timeout: Duration? = nil
    ) async throws(PluginError) -> Object {
        try await call(.objectURL(url), parameters, origin: origin, timeout: timeout).result(of: "“\(url.shortened)”")
    }
}

/// The origin of a call.
public enum CallOrigin: Sendable, Hashable {
    /// This program or one of its modules: it can call every action.
    case local
    /// Another program, by a URL: it can call only actions that are declared `remote`.
    case remote
}

extension HostContext {
    /// A context for calls to fresh instances: each call made through it gets its own instance of the target,
    /// regardless of the manifest.
    ///
    ///     try context.fresh.perform("Counter", "add", ["n": 1])
    public var fresh: HostContext {
        var copy = self
        copy.requestFlags |= PLUGIN_REQUEST_FRESH
        return copy
    }
}

// MARK: Folder, configuration and log

extension HostContext {
    /// The folder of the module's file, which also contains its resources. (The file that runs is a copy elsewhere.)
    /// Empty for a module that is part of the program.
    public var folder: String { about?.pointee.folder.text ?? "" }

    /// The name of the module that this context belongs to.
    public var moduleName: String { about?.pointee.module.text ?? "" }

    /// The current configuration of the module; empty if there is none. It can change while the module runs.
    public var configuration: [String: Value] {
        guard let present = plugin_configuration_of(host)
        else { return about.flatMap { Value(copying: $0.pointee.configuration, host: host).map } ?? [:] }
        var received = ReceivedConfiguration(host: host)
        withUnsafeMutablePointer(to: &received) { received in
            present.pointee.read(
                host,
                { data, value in
                    let received = data!.assumingMemoryBound(to: ReceivedConfiguration.self)
                    received.pointee.entries = Value(copying: value!.pointee, host: received.pointee.host).map ?? [:]
                }, received)
        }
        return received.entries
    }

    var about: UnsafePointer<plugin_context>? {
        plugin_context_of(host)
    }

    /// Writes a line to the host's log, together with the names of the module and of the running action.
    public func log(_ level: LogLevel, _ message: String) {
        guard let log = plugin_log_of(host) else { return }
        message.withPluginString { log.pointee.write(host, call, UInt32(level.rawValue), $0) }
    }
}

/// The configuration, on the reader's stack.
private struct ReceivedConfiguration {
    let host: UnsafePointer<plugin_host>
    var entries: [String: Value] = [:]
}

/// The severity of a line in the log. The raw values are the numbers in the binary interface.
public enum LogLevel: Int, Sendable, Comparable, CaseIterable {
    /// Information for the module author.
    case debug
    /// Normal operation.
    case info
    /// Something is wrong, but the module continues.
    case warning
    /// Something has failed.
    case error

    public static func < (left: LogLevel, right: LogLevel) -> Bool { left.rawValue < right.rawValue }
}
