/// An action in the interface of a ``Service``: its name, its parameters, and the type of its result.
///
///     Service("HomeService", version: "1.2.0", target: "A").interface(
///         ServiceAction("fetchDetail", .required("key", String.self), result: [String: Value].self),
///         ServiceAction("refresh", isAsync: true))
public struct ServiceAction: Sendable {
    private let declaration: ActionDeclaration

    /// Declares an action whose result can be of any type.
    ///
    /// - Parameters:
    ///   - name: The name of the action.
    ///   - parameters: The parameters that callers may pass, in order: `.required("key", String.self)`.
    ///   - isAsync: Whether the action may be asynchronous. If not, callers can `perform` it.
    ///   - hasRest: Whether callers may pass parameters that are not declared.
    public init(_ name: String, _ parameters: ParameterDeclaration..., isAsync: Bool = false, hasRest: Bool = false) {
        self.init(name, parameters, ResultDeclaration(.any), isAsync, hasRest)
    }

    /// Declares an action whose result is of a certain type.
    ///
    /// - Parameters:
    ///   - name: The name of the action.
    ///   - parameters: The parameters that callers may pass, in order.
    ///   - result: The type of the result.
    ///   - isAsync: Whether the action may be asynchronous.
    ///   - hasRest: Whether callers may pass parameters that are not declared.
    public init<Result: ActionResult>(
        _ name: String, _ parameters: ParameterDeclaration..., result: Result.Type, isAsync: Bool = false,
        hasRest: Bool = false
    ) {
        self.init(name, parameters, ResultDeclaration(Result.self), isAsync, hasRest)
    }

    private init(
        _ name: String, _ parameters: [ParameterDeclaration], _ result: ResultDeclaration, _ isAsync: Bool,
        _ hasRest: Bool
    ) {
        declaration = ActionDeclaration(
            name: name, parameters: parameters, hasRest: hasRest, result: result, isAsync: isAsync, run: { _ in })
    }

    func json(_ book: TypeBook?) -> String { declaration.json(showsResult: true, book) }
}

extension ParameterDeclaration {
    /// For an action in a service's interface: declares a parameter that callers must pass.
    ///
    /// - Parameters:
    ///   - name: The name of the parameter.
    ///   - type: A type of which only the kind matters, such as `String` or `[String: Value]`.
    ///   - summary: One sentence for people.
    public static func required<T: ActionParameter>(_ name: String, _ type: T.Type, summary: String = "") -> Self {
        Self(name: name, T.kind, { T.self }, isRequired: true, summary: summary)
    }

    /// For an action in a service's interface: declares a parameter that callers may omit.
    public static func optional<T: ActionParameter>(_ name: String, _ type: T.Type, summary: String = "") -> Self {
        Self(name: name, T.kind, { T.self }, isRequired: false, summary: summary)
    }
}
