import Synchronization

/// An ``Object`` of an ``ObjectType`` of this module. An action that returns one declares its type in the manifest, so
/// that façades know it.
///
///     Action("search", .context(), .required("text", String.self)) { context, text in
///         try context.object(Cursor(text))
///     }
public struct TypedObject<Instance: Sendable>: Sendable, Hashable, ValueConvertible {
    /// The object.
    public let object: Object

    /// Reads any object: whether its actions are those of the type is only known when they are called.
    public init(_ value: Value) throws(PluginError) { object = try Object(value) }

    init(_ object: Object) { self.object = object }

    public static var kind: Value.Kind { .object }
    public var value: Value { .object(object) }
    public func lend(to body: (plugin_value) -> Void) { object.lend(to: body) }
}

extension HostContext {
    /// Makes an object of the type that this module's manifest declares for instances of this Swift type.
    ///
    /// - Throws: ``PluginError/Code/unknownObject`` if the manifest declares no ``ObjectType``, or several, for it.
    public func object<Instance: Sendable>(_ instance: Instance) throws(PluginError) -> TypedObject<Instance> {
        let names = ObjectTypeNames.names(of: ObjectIdentifier(Instance.self))
        guard let name = names.first, names.count == 1 else {
            throw PluginError(
                .unknownObject,
                names.isEmpty
                    ? "The manifest of \(moduleName) declares no object type for \(Instance.self)."
                    : "Several object types are declared for \(Instance.self): \(names.joined(separator: ", ")). Write "
                        + "object(\"\(names[0])\", …).")
        }
        return TypedObject(try object(name, instance))
    }
}

/// The object types that are declared in this copy of the library, by the Swift types of their instances.
enum ObjectTypeNames {
    // A list, since a dictionary would make the runtime search all conformances when a module is loaded.
    private static let all = Mutex<[(type: ObjectIdentifier, name: String)]>([])

    static func add(_ name: String, for type: ObjectIdentifier) {
        all.withLock { all in
            if !all.contains(where: { $0.type == type && $0.name == name }) { all.append((type, name)) }
        }
    }

    static func names(of type: ObjectIdentifier) -> [String] {
        all.withLock { all in all.filter { $0.type == type }.map(\.name) }
    }
}

/// A ``TypedObject`` of some type.
protocol AnyTypedObject {
    static var instanceType: ObjectIdentifier { get }
}

extension TypedObject: AnyTypedObject {
    static var instanceType: ObjectIdentifier { ObjectIdentifier(Instance.self) }
}
