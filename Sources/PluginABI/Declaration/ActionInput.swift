/// One input of an action's closure: a declared parameter, the instance of the target, the context, or a reply handle.
///
/// Write `.required`, `.optional`, `.rest()`, `.instance()`, `.context()` or `.reply()`, in the order of the closure's
/// parameters.
public protocol ActionInput<Instance, Output>: Sendable {
    /// The instance of the target or object type that the action belongs to.
    associatedtype Instance
    /// The type that the closure receives.
    associatedtype Output
    /// Whether the input is the reply handle, which makes the action asynchronous.
    static var isReply: Bool { get }
    /// The declaration for the manifest; `nil` if the input is not a parameter.
    var declaration: ParameterDeclaration? { get }
    /// Reads the next input of a call. Reading does not use the declaration, so the action need not keep it.
    static func read(from inputs: inout InvocationInputs) throws(PluginError) -> Output
}

extension ActionInput {
    @inlinable public static var isReply: Bool { false }
    @inlinable public var declaration: ParameterDeclaration? { nil }
}

/// The declaration of a parameter in the manifest.
public struct ParameterDeclaration: Sendable {
    /// The name of the parameter, `[A-Za-z_][A-Za-z0-9_.-]*`, unique in the action.
    public var name: String
    /// The declared type, which the host checks, and to which it converts values if nothing is lost.
    public var kind: Value.Kind
    /// Whether every call must give the parameter.
    public var isRequired: Bool
    /// The value that the action gets if a call omits the parameter; null for none.
    public var defaultValue: Value
    /// One sentence for people; may be empty.
    public var summary: String
    /// The kind of input that is declared.
    @usableFromInline enum Role: Sendable {
        case parameter
        /// The parameters that the action does not declare.
        case rest
        /// A reply handle.
        case reply
    }

    private(set) var role = Role.parameter
    /// Returns the Swift type; `nil` if there is none. A closure, so that types are made only for tools that ask.
    private(set) var swiftType: (@Sendable () -> any ActionParameter.Type)?
    /// The result that is given by the reply handle.
    private(set) var repliedResult: ResultDeclaration?

    /// Makes a declaration. Modules write `.required` or `.optional` instead.
    public init(name: String, kind: Value.Kind, isRequired: Bool, defaultValue: Value, summary: String) {
        (self.name, self.kind, self.isRequired) = (name, kind, isRequired)
        (self.defaultValue, self.summary) = (defaultValue, summary)
    }

    @usableFromInline init(
        name: String, _ kind: Value.Kind, _ swiftType: @escaping @Sendable () -> any ActionParameter.Type,
        isRequired: Bool, default value: Value = .null, summary: String
    ) {
        self.init(name: name, kind: kind, isRequired: isRequired, defaultValue: value, summary: summary)
        self.swiftType = swiftType
    }

    private init(_ role: Role) {
        self.init(name: "", kind: .map, isRequired: false, defaultValue: .null, summary: "")
        self.role = role
    }

    /// The rest.
    @usableFromInline static var rest: ParameterDeclaration { ParameterDeclaration(.rest) }

    /// A reply handle.
    @usableFromInline static func reply(_ result: ResultDeclaration) -> ParameterDeclaration {
        var reply = ParameterDeclaration(.reply)
        reply.repliedResult = result
        return reply
    }
}

/// A call as it arrives in a module. It is valid until the action returns.
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

    @inlinable var token: plugin_token { call.pointee.token }
    @inlinable var instance: UnsafeMutableRawPointer? { call.pointee.instance }
    @inlinable var context: HostContext { HostContext(host: host, call: token) }
    @inlinable var inputs: InvocationInputs { InvocationInputs(self) }
}

/// The inputs of a call, read one after another in declared order.
public struct InvocationInputs {
    @usableFromInline let call: Invocation
    /// The number of arguments that were read; also 0 if an input that is not an argument could not be read.
    @usableFromInline var next = 0
    /// The handle that the action is about to receive.
    @usableFromInline var reply: (any ReplyHandle)?

    @inlinable init(_ call: Invocation) { self.call = call }

    /// Returns the error to be thrown if the inputs cannot be read.
    @usableFromInline @inline(never) func failure(_ error: PluginError) -> any Error {
        next > 0 ? ArgumentFailure(number: next - 1, error: error) : error
    }

    /// Runs `read` for an input that is not an argument.
    @inlinable @inline(__always) mutating func readOther<Output>(
        _ read: (Invocation) throws(PluginError) -> Output
    ) throws(PluginError) -> Output {
        do throws(PluginError) { return try read(call) } catch {
            next = 0
            throw error
        }
    }

    /// Returns the argument of the next parameter. The host passes exactly as many as the manifest declares.
    @inlinable mutating func nextArgument() -> plugin_value {
        guard let arguments = call.arguments, next < call.count else { return plugin_value_null() }
        defer { next += 1 }
        return arguments[next]
    }

    /// The rest, which the host passes as the last argument, whatever its position among the inputs.
    @inlinable var rest: plugin_value {
        guard let arguments = call.arguments, call.count > 0 else { return plugin_value_null() }
        return arguments[call.count - 1]
    }
}

// MARK: Parameters

// The types do not constrain their generic parameters; only their conformances do. To make a constrained type, the
// runtime would search the conformances of all libraries in the process, once for each module.

/// A parameter that must be given, or has a default.
public struct ArgumentInput<Instance, Output>: Sendable {
    /// The declaration for the manifest.
    public let parameter: ParameterDeclaration
    @inlinable init(_ parameter: ParameterDeclaration) { self.parameter = parameter }
}

extension ArgumentInput: ActionInput where Output: ActionParameter {
    @inlinable public var declaration: ParameterDeclaration? { parameter }
    @inlinable public static func read(from inputs: inout InvocationInputs) throws(PluginError) -> Output {
        try Output.read(inputs.nextArgument(), host: inputs.call.host)
    }
}

/// A parameter that may be missing.
public struct OptionalInput<Instance, Wrapped>: Sendable {
    /// The declaration for the manifest.
    public let parameter: ParameterDeclaration
    @inlinable init(_ parameter: ParameterDeclaration) { self.parameter = parameter }
}

extension OptionalInput: ActionInput where Wrapped: ActionParameter {
    public typealias Output = Wrapped?
    @inlinable public var declaration: ParameterDeclaration? { parameter }
    @inlinable public static func read(from inputs: inout InvocationInputs) throws(PluginError) -> Wrapped? {
        let raw = inputs.nextArgument()
        return raw.kind == PLUGIN_KIND_NULL ? nil : try Wrapped.read(raw, host: inputs.call.host)
    }
}

extension ActionInput {
    /// Declares a parameter that every call must give.
    ///
    /// - Parameters:
    ///   - name: The name of the parameter, `[A-Za-z_][A-Za-z0-9_.-]*`, unique in the action.
    ///   - type: `String`, `Int`, `Double`, `Bool`, ``Bytes``, ``Value``, ``Object``, ``Callback``, a list or map of
    ///     these, or a type of your own that is ``ValueConvertible``.
    ///   - summary: One sentence for people.
    @inlinable public static func required<I, T: ActionParameter>(
        _ name: String, _ type: T.Type, summary: String = ""
    ) -> Self where Self == ArgumentInput<I, T> {
        Self(ParameterDeclaration(name: name, T.kind, { T.self }, isRequired: true, summary: summary))
    }

    /// Declares a parameter that a call may omit; the closure then gets the default.
    @inlinable public static func optional<I, T: ValueConvertible>(
        _ name: String, _ type: T.Type, default value: T, summary: String = ""
    ) -> Self where Self == ArgumentInput<I, T> {
        let value = (try? value.value) ?? .null
        return Self(
            ParameterDeclaration(name: name, T.kind, { T.self }, isRequired: false, default: value, summary: summary))
    }

    /// Declares a parameter that a call may omit; the closure then gets `nil`.
    @inlinable public static func optional<I, T: ActionParameter>(
        _ name: String, _ type: T.Type, summary: String = ""
    ) -> Self where Self == OptionalInput<I, T> {
        Self(ParameterDeclaration(name: name, T.kind, { T.self }, isRequired: false, summary: summary))
    }
}

/// The parameters that a call passes by name and the action does not declare.
public struct RestInput<Instance>: ActionInput {
    @inlinable init() {}
    @inlinable public var declaration: ParameterDeclaration? { .rest }
    @inlinable public static func read(from inputs: inout InvocationInputs) throws(PluginError) -> [String: Value] {
        let rest = inputs.rest
        return try inputs.readOther { (call) throws(PluginError) in
            try [String: Value](borrowing: rest, host: call.host)
        }
    }
}

extension ActionInput {
    /// Declares that the action takes parameters that it does not declare. The closure gets them by name; the
    /// dictionary is empty if there are none.
    ///
    ///     Action("search", .required("text", String.self), .rest()) { text, filters in … }
    ///
    /// Without a rest, a call that passes such a parameter is refused; in the query of a URL, the parameter is dropped
    /// instead. A call can also pass the rest by position, after all declared parameters, as a map, whose entries then
    /// count as if they were passed by name. The names `_url`, `_pattern`, `_object`, `_event` and `_parameters`, which
    /// are reserved for the host, are never in the rest.
    @inlinable public static func rest<I>() -> Self where Self == RestInput<I> { Self() }
}

// MARK: Other inputs

/// The context of the call.
public struct ContextInput<Instance>: ActionInput {
    @inlinable init() {}
    @inlinable public static func read(from inputs: inout InvocationInputs) -> HostContext { inputs.call.context }
}

/// The instance of the target or object type.
public struct InstanceInput<Instance: Sendable>: ActionInput {
    @inlinable init() {}
    @inlinable public static func read(from inputs: inout InvocationInputs) throws(PluginError) -> Instance {
        try inputs.readOther { (call) throws(PluginError) in try InstanceBox<Instance>.instance(at: call.instance) }
    }
}

/// A handle through which the action replies later, from any thread.
public struct ReplyInput<Instance, Result: ActionResult>: ActionInput {
    @inlinable init() {}
    @inlinable public static var isReply: Bool { true }
    @inlinable public var declaration: ParameterDeclaration? { .reply(ResultDeclaration(Result.self)) }
    @inlinable public static func read(from inputs: inout InvocationInputs) -> Reply<Result> {
        let reply = Reply<Result>(host: inputs.call.host, call: inputs.call.token)
        inputs.reply = reply
        return reply
    }
}

extension ActionInput {
    /// Passes the context, through which the action calls other modules.
    @inlinable public static func context<I>() -> Self where Self == ContextInput<I> { Self() }

    /// Passes the instance that `Target(…, make:)` or `ObjectType` declares.
    @inlinable public static func instance<I>() -> Self where Self == InstanceInput<I> { Self() }

    /// Passes a handle for a later reply, for code that works with completions. It makes the action asynchronous.
    @inlinable public static func reply<I, Result>(
        _ type: Result.Type
    ) -> Self where Self == ReplyInput<I, Result> { Self() }
}
