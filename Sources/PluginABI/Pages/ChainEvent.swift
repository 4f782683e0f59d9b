/// An event on its way up the chain, as a handler sees it.
public struct ChainEvent: Sendable {
    /// The name of the event.
    public let name: String
    /// The parameters as emitted, or as changed by the last handler that passed the event on.
    public let parameters: [String: Value]
    /// The context for calls that have the call of the handler as their parent.
    public let context: HostContext

    package init(name: String, parameters: [String: Value], context: HostContext) {
        (self.name, self.parameters, self.context) = (name, parameters, context)
    }

    /// A parameter; `nil` if the event does not have it.
    public subscript(name: String) -> Value? { parameters[name] }
}

/// The reply of a handler to an event.
public enum ChainReply: Sendable, Hashable {
    /// The event is handled, and no other handler is asked. The emitter gets the result.
    case handled(Value)
    /// The next handler is asked, with these parameters or, if they are `nil`, with those that this handler got.
    case passedOn([String: Value]?)
    /// The handler has failed, as if it had thrown the error. The next handler is asked.
    case failed(PluginError)

    /// The event is handled, without a result.
    public static var handled: ChainReply { .handled(.null) }
    /// The next handler is asked, with the same parameters.
    public static var passedOn: ChainReply { .passedOn(nil) }

    /// The event is handled. The emitter gets the result. If that cannot be converted, the reply is ``failed(_:)``.
    @_disfavoredOverload
    public static func handled(_ result: (some ValueConvertible)?) -> ChainReply {
        do throws(PluginError) { return .handled(try result?.value ?? .null) } catch { return .failed(error) }
    }

    /// The next handler is asked, with these parameters. If they cannot be converted, the reply is ``failed(_:)``.
    @_disfavoredOverload
    public static func passedOn(_ parameters: NamedValues) -> ChainReply {
        do throws(PluginError) { return .passedOn(try parameters.get()) } catch { return .failed(error) }
    }

    /// Returns a reply that is not ``failed(_:)``, or throws its error.
    package func get() throws(PluginError) -> ChainReply {
        if case .failed(let error) = self { throw error }
        return self
    }
}

/// Converts to and from a map with `handled` and either `result` or `parameters`. Null and true are also read as
/// handled, and false as passed on.
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

    /// The reply as a map; throws the error of ``failed(_:)``.
    public var value: Value {
        get throws(PluginError) {
            switch self {
            case .handled(let result): ["handled": true, "result": result]
            case .passedOn(nil): false
            case .passedOn(let parameters?): ["handled": false, "parameters": .map(parameters)]
            case .failed(let error): throw error
            }
        }
    }

    private static func invalid(_ value: Value) -> PluginError {
        PluginError(
            .invalidResult,
            "A handler replied with a value of type \(value.kind) that does not state whether the event is handled. It "
                + "must reply with null, true, false, or a map with “handled”, “result” and “parameters”.")
    }
}

extension Action where Instance: Sendable {
    /// Handles an event that goes up the chain, in an object type or in a target with an instance.
    ///
    ///     ObjectType("Basket", Basket.self) {
    ///         Action.handle("shop.choose") { basket, event in
    ///             basket.add(event["key"]?.string ?? "")
    ///             return .handled
    ///         }
    ///     }
    ///
    /// The handler is an action named `handle.shop.choose`. An ordinary ``Action`` of that name can declare the event's
    /// parameters with their types. An error of the handler is reported to the emitter, and the next handler is asked.
    public static func handle(
        _ event: String, _ body: @escaping @Sendable (Instance, ChainEvent) throws -> ChainReply
    ) -> Action {
        Action(handlerName(event), .instance(), .context(), .optional("_parameters", [String: Value].self)) {
            instance, context, parameters in
            try body(instance, ChainEvent(name: event, parameters: parameters ?? [:], context: context)).get()
        }
    }

    /// Handles an event asynchronously. Only the asynchronous `emit` asks such a handler.
    public static func handle(
        _ event: String, _ body: @escaping @Sendable (Instance, ChainEvent) async throws -> ChainReply
    ) -> Action {
        Action(handlerName(event), .instance(), .context(), .optional("_parameters", [String: Value].self)) {
            (instance, context, parameters) async throws -> ChainReply in
            try await body(instance, ChainEvent(name: event, parameters: parameters ?? [:], context: context)).get()
        }
    }

    /// Handles all events that go up the chain, or all whose names begin with a prefix.
    ///
    ///     Action.handle(prefix: "shop.") { basket, event in
    ///         basket.note(event.name)
    ///         return .passedOn
    ///     }
    ///
    /// At each object, the handler of the event itself is asked first, then those with a prefix, longer ones first.
    /// The handler is an action whose name is `handles.` followed by the prefix.
    ///
    /// - Parameters:
    ///   - prefix: The beginning of the names. Default: all events.
    ///   - body: The code that handles an event.
    public static func handle(
        prefix: String = "", _ body: @escaping @Sendable (Instance, ChainEvent) throws -> ChainReply
    ) -> Action {
        Action(
            "handles." + prefix, .instance(), .context(), .optional("_event", String.self),
            .optional("_parameters", [String: Value].self)
        ) { instance, context, event, parameters in
            try body(instance, ChainEvent(name: event ?? "", parameters: parameters ?? [:], context: context)).get()
        }
        .handles(prefix: prefix)
    }

    /// Handles all events, or all with a prefix, asynchronously. Only the asynchronous `emit` asks such a handler.
    public static func handle(
        prefix: String = "", _ body: @escaping @Sendable (Instance, ChainEvent) async throws -> ChainReply
    ) -> Action {
        Action(
            "handles." + prefix, .instance(), .context(), .optional("_event", String.self),
            .optional("_parameters", [String: Value].self)
        ) { (instance, context, event, parameters) async throws -> ChainReply in
            try await body(instance, ChainEvent(name: event ?? "", parameters: parameters ?? [:], context: context))
                .get()
        }
        .handles(prefix: prefix)
    }
}

extension Action where Instance == Never {
    /// Handles an event that goes up the chain, for the module: in a target without an instance.
    public static func handle(
        _ event: String, _ body: @escaping @Sendable (ChainEvent) throws -> ChainReply
    ) -> Action {
        Action(handlerName(event), .context(), .optional("_parameters", [String: Value].self)) { context, parameters in
            try body(ChainEvent(name: event, parameters: parameters ?? [:], context: context)).get()
        }
    }

    /// Handles an event asynchronously. Only the asynchronous `emit` asks such a handler.
    public static func handle(
        _ event: String, _ body: @escaping @Sendable (ChainEvent) async throws -> ChainReply
    ) -> Action {
        Action(handlerName(event), .context(), .optional("_parameters", [String: Value].self)) {
            (context, parameters) async throws -> ChainReply in
            try await body(ChainEvent(name: event, parameters: parameters ?? [:], context: context)).get()
        }
    }

    /// Handles all events that go up the chain, or all whose names begin with a prefix, for the module: in a target
    /// without an instance.
    ///
    /// - Parameters:
    ///   - prefix: The beginning of the names. Default: all events.
    ///   - body: The code that handles an event.
    public static func handle(
        prefix: String = "", _ body: @escaping @Sendable (ChainEvent) throws -> ChainReply
    ) -> Action {
        Action(
            "handles." + prefix, .context(), .optional("_event", String.self),
            .optional("_parameters", [String: Value].self)
        ) { context, event, parameters in
            try body(ChainEvent(name: event ?? "", parameters: parameters ?? [:], context: context)).get()
        }
        .handles(prefix: prefix)
    }

    /// Handles all events, or all with a prefix, asynchronously. Only the asynchronous `emit` asks such a handler.
    public static func handle(
        prefix: String = "", _ body: @escaping @Sendable (ChainEvent) async throws -> ChainReply
    ) -> Action {
        Action(
            "handles." + prefix, .context(), .optional("_event", String.self),
            .optional("_parameters", [String: Value].self)
        ) { (context, event, parameters) async throws -> ChainReply in
            try await body(ChainEvent(name: event ?? "", parameters: parameters ?? [:], context: context)).get()
        }
        .handles(prefix: prefix)
    }
}

/// Returns the name of the action that handles an event.
package func handlerName(_ event: String) -> String { "handle." + event }
