// Event bubbling: an event goes from an object to its parent, and on to the module and the program. The model is the
// responder chain of AppKit and UIKit.

extension HostContext {
    /// Emits an event up the chain: to an object, its parent, that object's parent and so on, then to the module, then
    /// to the program, until one of them handles it.
    ///
    ///     let outcome = try context.emit("shop.choose", ["key": "pear"])
    ///     if !outcome.isHandled { … }
    ///
    /// - Parameters:
    ///   - event: A name, such as `shop.choose`.
    ///   - parameters: Parameters by name. A handler gets only those that it declares.
    ///   - origin: The object at which the event begins. Default: the receiver of this call or, in an action of a
    ///     target, the module.
    /// - Returns: The outcome, with the handler. It is not an error if nothing handles the event.
    /// - Throws: ``PluginError/Code/unknownObject`` if the origin no longer exists; ``PluginError/Code/invalidValue``
    ///   if a parameter has no name; ``PluginError/Code/recursionLimit`` if the event is emitted from its own handler
    ///   again and again.
    @discardableResult
    public func emit(
        _ event: String, _ parameters: Parameters = [:], from origin: Object? = nil
    ) throws(PluginError) -> ChainOutcome {
        try ChainOutcome(perform(.chain(event, from: origin), parameters))
    }

    /// Emits an event up the chain, also to asynchronous handlers: each one is awaited before the next one is asked.
    @discardableResult
    public func emit(
        _ event: String, _ parameters: Parameters = [:], from origin: Object? = nil, timeout: Duration? = nil
    ) async throws(PluginError) -> ChainOutcome {
        try ChainOutcome(await call(.chain(event, from: origin), parameters, timeout: timeout))
    }

    /// The receiver of this call: the object whose action runs; `nil` for an action of a target.
    public var receiver: Object? {
        guard let handle = chain?.pointee.receiver(host, call), handle != 0 else { return nil }
        return Object(retaining: handle, host: host)
    }

    /// Makes an object with a parent, which gets the events that the object does not handle. The object does not keep
    /// its parent alive.
    ///
    ///     try context.object("Row", Row(), parent: context.receiver)
    ///
    /// - Throws: The errors of ``object(_:_:)``.
    public func object<Instance: Sendable>(
        _ type: String, _ instance: Instance, parent: Object?
    ) throws(PluginError) -> Object {
        let object = try object(type, instance)
        try object.setParent(parent)
        return object
    }

    fileprivate var chain: UnsafePointer<plugin_chain>? {
        plugin_chain_of(host)
    }
}

extension Object {
    /// Sets the parent of the object, which gets the events that the object does not handle; `nil` removes it.
    ///
    /// The object does not keep its parent alive. If the parent no longer exists, events pass on to the module. A
    /// navigator sets the parent of each page that it shows: the page below.
    ///
    /// - Throws: ``PluginError/Code/circularWait`` if the object is the parent itself, or is above the parent in the
    ///   chain; ``PluginError/Code/unknownObject`` if the object or the parent no longer exists.
    public func setParent(_ parent: Object?) throws(PluginError) {
        guard let chain = HostContext(host: host).chain else {
            throw .missingExtension(PLUGIN_CHAIN_EXTENSION, .unknownObject)
        }
        switch chain.pointee.set_parent(host, handle, parent?.handle ?? 0) {
        case PLUGIN_PARENT_SET: break
        case PLUGIN_PARENT_CIRCULAR:
            throw PluginError(.circularWait, "An object cannot be its own parent or ancestor.")
        default: throw PluginError(.unknownObject, "The object or its parent no longer exists.")
        }
    }
}

/// The outcome of an event that was emitted up the chain.
public struct ChainOutcome: Sendable, Hashable {
    /// Whether the event was handled.
    public let isHandled: Bool
    /// The handler, for people: `Article#handle.shop.choose of ModuleA`, or `the program`; `nil` if the event was not
    /// handled.
    public let handler: String?
    /// The result of the handler; null if there is none.
    public let result: Value
    /// The parameters at the end. Handlers that passed the event on may have changed them.
    public let parameters: [String: Value]
    /// The errors of the handlers that failed; the source of each is the handler's module. A handler that fails passes
    /// the event on unchanged.
    public let failures: [PluginError]

    package init(
        isHandled: Bool, handler: String?, result: Value, parameters: [String: Value], failures: [PluginError]
    ) {
        (self.isHandled, self.handler, self.result) = (isHandled, handler, result)
        (self.parameters, self.failures) = (parameters, failures)
    }
}

/// Converts to and from a map with `handled`, `handler`, `result`, `parameters` and `failures`, the form in which an
/// outcome crosses the boundary.
extension ChainOutcome: ValueConvertible {
    public static var kind: Value.Kind { .map }

    public init(_ value: Value) {
        isHandled = value["handled"]?.bool ?? false
        handler = value["handler"]?.string
        result = value["result"] ?? .null
        parameters = value["parameters"]?.map ?? [:]
        failures = (value["failures"]?.list ?? []).map { PluginError($0) }
    }

    public var value: Value {
        [
            "handled": .bool(isHandled), "handler": handler.map(Value.string) ?? .null, "result": result,
            "parameters": .map(parameters), "failures": .list(failures.map(\.record)),
        ]
    }
}
