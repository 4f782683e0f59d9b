/// One input of an action's closure: a declared parameter, the instance of the target, the context, or a reply handle.
///
/// Write `.required`, `.optional`, `.instance()`, `.context` or `.reply()`, in the order of the closure's parameters.
public protocol ActionInput<Instance, Output>: Sendable {
    /// The instance of the target or object type that the action belongs to.
    associatedtype Instance
    /// What the closure gets.
    associatedtype Output
    /// How many of the call's arguments the input takes: 0 or 1.
    static var argumentCount: Int { get }
    /// Whether the input makes the action asynchronous, since it carries the reply.
    static var isReply: Bool { get }
    /// What the manifest says about it; nil for what is not a parameter.
    var declaration: ParameterDeclaration? { get }
    /// Takes the input out of a call; `index` is the place of its argument.
    func read(from invocation: Invocation, at index: Int) throws(PluginError) -> Output
}

extension ActionInput {
    @inlinable public static var argumentCount: Int { 0 }
    @inlinable public static var isReply: Bool { false }
    @inlinable public var declaration: ParameterDeclaration? { nil }
}

/// What the manifest says about a parameter.
public struct ParameterDeclaration: Sendable {
    /// Its name, `[A-Za-z_][A-Za-z0-9_.-]*`, unique in the action.
    public var name: String
    /// The declared type: what the host checks, and converts to where nothing is lost.
    public var kind: Value.Kind
    /// Whether every call must give it.
    public var isRequired: Bool
    /// What the action gets when a call leaves it out; null for none.
    public var defaultValue: Value
    /// One sentence for people; may be empty.
    public var summary: String

    /// Makes a declaration. Modules write `.required` or `.optional` instead.
    public init(name: String, kind: Value.Kind, isRequired: Bool, defaultValue: Value, summary: String) {
        self.name = name
        self.kind = kind
        self.isRequired = isRequired
        self.defaultValue = defaultValue
        self.summary = summary
    }
}

/// A call as it arrives in a module. Lives until the action returns.
public struct Invocation {
    @usableFromInline let call: UnsafePointer<plugin_call>
    @usableFromInline let arguments: UnsafePointer<plugin_value>?
    @usableFromInline let count: Int
    @usableFromInline let host: UnsafePointer<plugin_host>

    @inlinable init(
        call: UnsafePointer<plugin_call>, arguments: UnsafePointer<plugin_value>?, count: UInt32,
        host: UnsafePointer<plugin_host>
    ) {
        self.call = call
        self.arguments = arguments
        self.count = Int(count)
        self.host = host
    }

    @inlinable var context: HostContext { HostContext(host: host, call: call.pointee.token) }

    /// The argument at a place that the manifest declares; the host passes exactly as many as that.
    @inlinable func argument(_ index: Int) -> plugin_value {
        guard let arguments, index < count else { return plugin_value_null() }
        return arguments[index]
    }
}

// MARK: Parameters

// The types ask nothing of what they are generic over, only their conformances do: to make a type that does, the runtime
// searches the conformances of all libraries of the process, once for each module.

/// A parameter that must be given, or has a default.
public struct ArgumentInput<Instance, Output>: Sendable {
    /// What the manifest says about the parameter.
    public let parameter: ParameterDeclaration
    @inlinable init(_ parameter: ParameterDeclaration) { self.parameter = parameter }
}

extension ArgumentInput: ActionInput where Output: ActionParameter {
    @inlinable public static var argumentCount: Int { 1 }
    @inlinable public var declaration: ParameterDeclaration? { parameter }
    @inlinable public func read(from invocation: Invocation, at index: Int) throws(PluginError) -> Output {
        try Output.read(invocation.argument(index), host: invocation.host)
    }
}

/// A parameter that may be missing.
public struct OptionalInput<Instance, Wrapped>: Sendable {
    /// What the manifest says about the parameter.
    public let parameter: ParameterDeclaration
    @inlinable init(_ parameter: ParameterDeclaration) { self.parameter = parameter }
}

extension OptionalInput: ActionInput where Wrapped: ActionParameter {
    public typealias Output = Wrapped?
    @inlinable public static var argumentCount: Int { 1 }
    @inlinable public var declaration: ParameterDeclaration? { parameter }
    @inlinable public func read(from invocation: Invocation, at index: Int) throws(PluginError) -> Wrapped? {
        let raw = invocation.argument(index)
        return raw.kind == PLUGIN_KIND_NULL ? nil : try Wrapped.read(raw, host: invocation.host)
    }
}

extension ActionInput {
    /// A parameter that every call must give.
    ///
    /// - Parameters:
    ///   - name: `[A-Za-z_][A-Za-z0-9_.-]*`, unique in the action.
    ///   - type: `String`, `Int`, `Double`, `Bool`, ``Bytes``, ``Value``, ``Object``, ``Callback``, lists and maps of
    ///     them, or a type of yours that is ``ValueConvertible``.
    ///   - summary: One sentence for people.
    @inlinable public static func required<I, T: ActionParameter>(
        _ name: String, _ type: T.Type, summary: String = ""
    ) -> Self where Self == ArgumentInput<I, T> {
        Self(ParameterDeclaration(name: name, kind: T.kind, isRequired: true, defaultValue: .null, summary: summary))
    }

    /// A parameter that a call may leave out; the closure gets the default then.
    @inlinable public static func optional<I, T: ValueConvertible>(
        _ name: String, _ type: T.Type, default value: T, summary: String = ""
    ) -> Self where Self == ArgumentInput<I, T> {
        let value = (try? value.value) ?? .null
        return Self(
            ParameterDeclaration(name: name, kind: T.kind, isRequired: false, defaultValue: value, summary: summary))
    }

    /// A parameter that a call may leave out; the closure gets nil then.
    @inlinable public static func optional<I, T: ActionParameter>(
        _ name: String, _ type: T.Type, summary: String = ""
    ) -> Self where Self == OptionalInput<I, T> {
        Self(ParameterDeclaration(name: name, kind: T.kind, isRequired: false, defaultValue: .null, summary: summary))
    }
}

// MARK: What is no parameter

/// The context of the call.
public struct ContextInput<Instance>: ActionInput {
    @inlinable init() {}
    @inlinable public func read(from invocation: Invocation, at index: Int) -> HostContext { invocation.context }
}

/// The instance of the target or object type.
public struct InstanceInput<Instance: Sendable>: ActionInput {
    @inlinable init() {}
    @inlinable public func read(from invocation: Invocation, at index: Int) throws(PluginError) -> Instance {
        try InstanceBox<Instance>.instance(at: invocation.call.pointee.instance)
    }
}

/// The reply, to be given later and from any thread.
public struct ReplyInput<Instance, Result: ActionResult>: ActionInput {
    @inlinable init() {}
    @inlinable public static var isReply: Bool { true }
    @inlinable public func read(from invocation: Invocation, at index: Int) -> Reply<Result> {
        Reply(host: invocation.host, call: invocation.call.pointee.token)
    }
}

extension ActionInput {
    /// What the action calls other modules through.
    @inlinable public static func context<I>() -> Self where Self == ContextInput<I> { Self() }

    /// The instance that `Target(…, make:)` or `ObjectType` declares.
    @inlinable public static func instance<I>() -> Self where Self == InstanceInput<I> { Self() }

    /// A handle to reply with later, for code that works with completions. It makes the action asynchronous.
    @inlinable public static func reply<I, Result>(
        _ type: Result.Type
    ) -> Self where Self == ReplyInput<I, Result> { Self() }
}
