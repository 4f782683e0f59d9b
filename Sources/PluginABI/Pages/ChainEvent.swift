/// An event on its way up the chain, as a handler sees it.
public struct ChainEvent: Sendable {
    /// Its name.
    public let name: String
    /// As whoever emitted it gave them, or as the last one who passed it on has changed them.
    public let parameters: [String: Value]
    /// The host, for calls that are made for this event.
    public let context: HostContext

    package init(name: String, parameters: [String: Value], context: HostContext) {
        self.name = name
        self.parameters = parameters
        self.context = context
    }

    /// A parameter; nil where the event does not carry it.
    public subscript(name: String) -> Value? { parameters[name] }
}

/// What a handler has done with an event.
public enum ChainReply: Sendable, Hashable {
    /// It is dealt with: nobody else is asked. The result goes to whoever emitted it.
    case handled(Value)
    /// The next one is asked; with these parameters, or, if they are nil, with those that this one got.
    case passedOn([String: Value]?)

    /// It is dealt with, and there is no more to say.
    public static var handled: ChainReply { .handled(.null) }
    /// The next one is asked.
    public static var passedOn: ChainReply { .passedOn(nil) }
}

/// A map with `handled` and, as the case may be, `result` or `parameters`. What is read may also be null or true, for
/// handled, and false.
extension ChainReply: ValueConvertible {
    public static var kind: Value.Kind { .any }

    public init(_ value: Value) throws(PluginError) {
        switch value {
        case .null, .bool(true): self = .handled
        case .bool(false): self = .passedOn
        case .map(let map):
            let isHandled = map["handled"] ?? false
            guard map.keys.allSatisfy(["handled", "result", "parameters"].contains), isHandled.kind == .bool,
                map["parameters"].map({ $0.kind == .map }) ?? true
            else { throw Self.invalid(value) }
            self = isHandled == true ? .handled(map["result"] ?? .null) : .passedOn(map["parameters"]?.map)
        default: throw Self.invalid(value)
        }
    }

    public var value: Value {
        switch self {
        case .handled(let result): ["handled": true, "result": result]
        case .passedOn(nil): false
        case .passedOn(let parameters?): ["handled": false, "parameters": .map(parameters)]
        }
    }

    private static func invalid(_ value: Value) -> PluginError {
        PluginError(
            .invalidResult,
            "A handler replied with a value of type \(value.kind) that says neither that the event is handled nor that it is "
                + "not. It replies with null, true, false, or a map with “handled”, “result” and “parameters”.")
    }
}

extension Action where Instance: Sendable {
    /// Handles an event that runs up the chain, in an object type, or in a target with an instance.
    ///
    ///     ObjectType("Basket", Basket.self) {
    ///         Action.handle("shop.choose") { basket, event in
    ///             basket.add(event["key"]?.string ?? "")
    ///             return .handled
    ///         }
    ///     }
    ///
    /// It is an action named `handle.shop.choose`; one that is written out can declare the event's parameters with their
    /// types. What it throws is reported to whoever emitted the event, and the next one is asked.
    public static func handle(
        _ event: String, _ body: @escaping @Sendable (Instance, ChainEvent) throws -> ChainReply
    ) -> Action {
        Action(handlerName(event), .instance(), .context(), .optional("_parameters", [String: Value].self)) {
            instance, context, parameters in
            try body(instance, ChainEvent(name: event, parameters: parameters ?? [:], context: context))
        }
    }

    /// Handles an event asynchronously. `emit` asks such a handler only where it is awaited.
    public static func handle(
        _ event: String, _ body: @escaping @Sendable (Instance, ChainEvent) async throws -> ChainReply
    ) -> Action {
        Action(handlerName(event), .instance(), .context(), .optional("_parameters", [String: Value].self)) {
            (instance, context, parameters) async throws -> ChainReply in
            try await body(instance, ChainEvent(name: event, parameters: parameters ?? [:], context: context))
        }
    }
}

extension Action where Instance == Never {
    /// Handles an event that runs up the chain, for the module: in a target without an instance.
    public static func handle(
        _ event: String, _ body: @escaping @Sendable (ChainEvent) throws -> ChainReply
    ) -> Action {
        Action(handlerName(event), .context(), .optional("_parameters", [String: Value].self)) { context, parameters in
            try body(ChainEvent(name: event, parameters: parameters ?? [:], context: context))
        }
    }

    /// Handles an event asynchronously. `emit` asks such a handler only where it is awaited.
    public static func handle(
        _ event: String, _ body: @escaping @Sendable (ChainEvent) async throws -> ChainReply
    ) -> Action {
        Action(handlerName(event), .context(), .optional("_parameters", [String: Value].self)) {
            (context, parameters) async throws -> ChainReply in
            try await body(ChainEvent(name: event, parameters: parameters ?? [:], context: context))
        }
    }
}

/// The name of the action that handles an event.
package func handlerName(_ event: String) -> String { "handle." + event }
