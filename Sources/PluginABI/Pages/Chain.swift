import CPluginABI

// Events along a chain: from an object to its parent, and on to the module and the program. The idea is the responder
// chain of AppKit and UIKit, as the demo GHL uses it for events of its views.

extension HostContext {
    /// Sends an event up the chain: to an object, its parent, the parent of that and so on, then to the module, then to
    /// the program, until one handles it.
    ///
    ///     let outcome = try context.emit("shop.choose", ["key": "pear"])
    ///     if !outcome.isHandled { … }
    ///
    /// - Parameters:
    ///   - event: A name, such as `shop.choose`.
    ///   - parameters: By name. What a handler does not declare is left out for it.
    ///   - origin: Where it begins. Default: the object that this call works on, or, in an action of a target, the module.
    /// - Returns: Who has handled it; nobody is no error.
    /// - Throws: ``PluginError/Code/unknownObject`` when nobody holds the origin any more;
    ///   ``PluginError/Code/invalidValue`` for parameters without names;
    ///   ``PluginError/Code/recursionLimit`` for an event that is emitted from inside its own handler again and again.
    @discardableResult
    public func emit(
        _ event: String, _ parameters: Parameters = [:], from origin: Object? = nil
    ) throws(PluginError) -> ChainOutcome {
        try ChainOutcome(perform(.chain(event, from: origin), parameters))
    }

    /// The same, also for handlers that are asynchronous: each one is awaited before the next is asked.
    @discardableResult
    public func emit(
        _ event: String, _ parameters: Parameters = [:], from origin: Object? = nil, timeout: Duration? = nil
    ) async throws(PluginError) -> ChainOutcome {
        try ChainOutcome(await call(.chain(event, from: origin), parameters, timeout: timeout))
    }

    /// The object that this call works on: of an action of an object type the object, else nil.
    public var receiver: Object? {
        guard let handle = chain?.pointee.receiver(host, call), handle != 0 else { return nil }
        return Object(retaining: handle, host: host)
    }

    /// Makes an object with a parent, to which events go on that it does not handle. It does not keep the parent alive.
    ///
    ///     try context.object("Row", Row(), parent: context.receiver)
    ///
    /// - Throws: As ``object(_:_:)``.
    public func object<Instance: Sendable>(
        _ type: String, _ instance: Instance, parent: Object?
    ) throws(PluginError) -> Object {
        let object = try object(type, instance)
        try object.setParent(parent)
        return object
    }

    fileprivate var chain: UnsafePointer<plugin_chain>? {
        host.table(HostExtension.chain, as: plugin_chain.self)
    }
}

extension Object {
    /// Gives the object a parent, to which events go on that it does not handle; nil takes it away.
    ///
    /// The object does not keep its parent alive. Where a parent has gone, events go on to the module. Of pages that a
    /// navigator shows, the navigator sets the parent: the page below.
    ///
    /// - Throws: ``PluginError/Code/circularWait`` when the object is above the parent already.
    public func setParent(_ parent: Object?) throws(PluginError) {
        guard let chain = HostContext(host: host).chain else {
            throw PluginError(.unknownObject, "This host lacks the extension \(PLUGIN_CHAIN_EXTENSION).")
        }
        switch chain.pointee.set_parent(host, handle, parent?.handle ?? 0) {
        case PLUGIN_PARENT_SET: break
        case PLUGIN_PARENT_CIRCULAR:
            throw PluginError(.circularWait, "The object is its own parent, or stands above it: events would go round.")
        default: throw PluginError(.unknownObject, "The object or its parent is gone.")
        }
    }
}

/// What has become of an event that ran up the chain.
public struct ChainOutcome: Sendable, Hashable {
    /// Whether somebody handled it.
    public let isHandled: Bool
    /// Who handled it, for people: `Article#handle.shop.choose of ModuleA`, or `the program`; nil for nobody.
    public let handler: String?
    /// What the one who handled it has to say; null when nothing.
    public let result: Value
    /// The parameters as they were in the end: those who passed the event on may have changed them.
    public let parameters: [String: Value]
    /// What handlers say that failed; the source is the module. The event was passed on by them as it was.
    public let failures: [PluginError]

    package init(
        isHandled: Bool, handler: String?, result: Value, parameters: [String: Value], failures: [PluginError]
    ) {
        self.isHandled = isHandled
        self.handler = handler
        self.result = result
        self.parameters = parameters
        self.failures = failures
    }
}

/// A map with `handled`, `handler`, `result`, `parameters` and `failures`, as it crosses the border.
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
