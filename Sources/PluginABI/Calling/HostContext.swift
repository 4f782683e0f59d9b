/// The host, as a module sees it while it works on one call: what an action calls other modules through.
///
/// An action asks for it with `.context` among its parameters. It can be kept and used later and from any thread;
/// calls made through it name the call that it came with as their parent, so that errors and status can show the whole
/// chain, and calls without end are found.
public struct HostContext: Sendable {
    /// The host's table; it lives as long as the process.
    @usableFromInline nonisolated(unsafe) let host: UnsafePointer<plugin_host>
    /// The call that is being worked on; 0 for none.
    public let call: plugin_token
    /// What is said with every call: `PLUGIN_REQUEST_FRESH`, or nothing.
    var requestFlags: UInt32 = 0

    /// Wraps the table that a module written against the header got, and the call that is being worked on.
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
    ///   - timeout: The time that the call may take. Code is never interrupted: a call that took longer ends with
    ///     ``PluginError/Code/deadlineExceeded`` when it returns. Default: none.
    /// - Throws: What the host or the action says; ``PluginError/Code/asynchronousAction`` for an asynchronous action.
    @discardableResult
    public func perform(
        _ target: String, _ action: String, _ parameters: Parameters = [:], timeout: Duration? = nil
    ) throws(PluginError) -> Value {
        try perform(.action(target, action), parameters, timeout: timeout)
    }

    /// Calls an action, synchronous or asynchronous, and waits for its result without blocking a thread.
    ///
    /// It begins where the caller is, on its actor: a synchronous action runs there to its end, an asynchronous one until
    /// it waits for the first time.
    ///
    /// - Parameters:
    ///   - target: The name of the target, of any module.
    ///   - action: The name of the action.
    ///   - parameters: By name or by position.
    ///   - timeout: The time until the call ends with ``PluginError/Code/deadlineExceeded``; the action itself is told
    ///     and goes on. Default: the host's, for asynchronous actions.
    /// - Throws: What the host or the action says; ``PluginError/Code/cancelled`` when this task is cancelled.
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
    ///   - timeout: The time that the call may take.
    /// - Throws: ``PluginError/Code/blockingInTask`` inside a Swift task, where blocking can stop the whole program.
    @discardableResult
    public func performAndWait(
        _ target: String, _ action: String, _ parameters: Parameters = [:], timeout: Duration
    ) throws(PluginError) -> Value {
        try wait(for: .action(target, action), parameters, timeout: timeout)
    }

    /// Opens a URL that addresses a synchronous action. See ``perform(_:_:_:timeout:)``.
    ///
    /// - Parameters:
    ///   - url: `scheme://target/action?name=value`, with a scheme that the program answers to.
    ///   - parameters: Values of any kind that stand before those of the URL.
    ///   - origin: ``CallOrigin/remote`` for a URL that came from outside the program.
    ///   - timeout: The time that the call may take. Default: none.
    @discardableResult
    public func open(
        _ url: String, _ parameters: Parameters = [:], origin: CallOrigin = .local, timeout: Duration? = nil
    ) throws(PluginError) -> Value {
        try perform(.url(url), parameters, origin: origin, timeout: timeout)
    }

    /// Opens a URL that addresses an action of either kind. See ``call(_:_:_:timeout:)``.
    @discardableResult
    public func open(
        _ url: String, _ parameters: Parameters = [:], origin: CallOrigin = .local, timeout: Duration? = nil
    ) async throws(PluginError) -> Value {
        try await call(.url(url), parameters, origin: origin, timeout: timeout)
    }
}

extension HostContext {
    /// Asks for the object of a URL, and says so in the call: the action sees it as its parameter `_object`.
    ///
    /// - Throws: as `open`; ``PluginError/Code/invalidResult`` when the result is no object.
    public func object(
        for url: String, _ parameters: Parameters = [:], origin: CallOrigin = .local, timeout: Duration? = nil
    ) async throws(PluginError) -> Object {
        try await call(.objectURL(url), parameters, origin: origin, timeout: timeout).result(of: "“\(url.shortened)”")
    }
}

/// Where a call comes from.
public enum CallOrigin: Sendable, Hashable {
    /// This program and its modules: every action can be reached.
    case local
    /// Another program, by a URL: only actions that are declared `remote`.
    case remote
}

extension HostContext {
    /// The same host; but for each call that is made through it, the target gets an instance of its own, whatever its
    /// manifest says.
    ///
    ///     try context.fresh.perform("Counter", "add", ["n": 1])
    public var fresh: HostContext {
        var copy = self
        copy.requestFlags |= PLUGIN_REQUEST_FRESH
        return copy
    }
}

// MARK: What the host knows and gives

extension HostContext {
    /// The folder in the plugins folder that the module came from; its resources lie there. (What runs is a copy.) Empty
    /// for a module that is a part of the program.
    public var folder: String { about?.pointee.folder.text ?? "" }

    /// The name of the module that this context belongs to.
    public var moduleName: String { about?.pointee.module.text ?? "" }

    /// What the host is configured to tell this module now; empty when nothing is. It can change while the module runs.
    public var configuration: [String: Value] {
        guard let present = host.table(HostExtension.configuration, as: plugin_configuration.self)
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
        host.table(HostExtension.context, as: plugin_context.self)
    }

    /// Writes a line to the host's log, with the module and the call it is about.
    public func log(_ level: LogLevel, _ message: String) {
        guard let log = host.table(HostExtension.log, as: plugin_log.self) else { return }
        message.withPluginString { log.pointee.write(host, call, UInt32(level.rawValue), $0) }
    }
}

/// Takes the configuration, on the reader's stack.
private struct ReceivedConfiguration {
    let host: UnsafePointer<plugin_host>
    var entries: [String: Value] = [:]

    init(host: UnsafePointer<plugin_host>) { self.host = host }
}

/// How much a line of the log matters. The raw values are those of the binary interface.
public enum LogLevel: Int, Sendable, Comparable, CaseIterable {
    /// For the author of the module.
    case debug
    /// What happens in the ordinary course.
    case info
    /// Something is wrong, and the module goes on.
    case warning
    /// Something has failed.
    case error

    public static func < (left: LogLevel, right: LogLevel) -> Bool { left.rawValue < right.rawValue }
}

/// The identifiers of the host's extensions, in the form in which they cross the border.
enum HostExtension {
    nonisolated(unsafe) static let bound = plugin_string.immortal(PLUGIN_BOUND_EXTENSION)
    nonisolated(unsafe) static let chain = plugin_string.immortal(PLUGIN_CHAIN_EXTENSION)
    nonisolated(unsafe) static let configuration = plugin_string.immortal(PLUGIN_CONFIGURATION_EXTENSION)
    nonisolated(unsafe) static let context = plugin_string.immortal(PLUGIN_CONTEXT_EXTENSION)
    nonisolated(unsafe) static let instances = plugin_string.immortal(PLUGIN_INSTANCES_EXTENSION)
    nonisolated(unsafe) static let log = plugin_string.immortal(PLUGIN_LOG_EXTENSION)
    nonisolated(unsafe) static let routes = plugin_string.immortal(PLUGIN_ROUTES_EXTENSION)
    nonisolated(unsafe) static let services = plugin_string.immortal(PLUGIN_SERVICES_EXTENSION)
}

extension UnsafePointer<plugin_host> {
    /// The table of an extension; nil of a host that does not have it.
    @inline(__always)
    func table<Table>(_ identifier: plugin_string, as type: Table.Type) -> UnsafePointer<Table>? {
        pointee.get_extension(self, identifier)?.assumingMemoryBound(to: type)
    }
}
