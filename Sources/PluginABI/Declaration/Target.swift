/// A named group of actions, optionally with an instance that they work on.
public struct Target<Instance: Sendable>: ManifestPart {
    @usableFromInline private(set) var declaration: TargetDeclaration

    /// Declares a target whose actions get an instance, as `.instance()`. The instance is made once, on first use, and
    /// shared by all calls, which may run concurrently.
    ///
    /// - Parameters:
    ///   - name: The name of the target, `[A-Za-z_][A-Za-z0-9_.-]*`, unique in a host.
    ///   - make: The closure that makes the instance. The caller receives the error that it throws.
    ///   - actions: The actions of the target.
    public init(
        _ name: String, make: @escaping @Sendable (HostContext) throws -> Instance,
        @ActionBuilder<Instance> actions: () -> [ActionDeclaration]
    ) {
        declaration = TargetDeclaration(name: name, make: { InstanceBox.retained(try make($0)) }, actions: actions())
    }

    /// Declares a target whose actions get an instance, made without a context.
    public init(
        _ name: String, make: @escaping @Sendable () throws -> Instance,
        @ActionBuilder<Instance> actions: () -> [ActionDeclaration]
    ) {
        self.init(name, make: { _ in try make() }, actions: actions)
    }

    /// Makes the host create an instance for every call, instead of a shared one.
    public func instancePerCall() -> Self { modified(self) { $0.declaration.isInstancePerCall = true } }

    /// Adds one sentence about the target.
    public func summary(_ text: String) -> Self { modified(self) { $0.declaration.summary = text } }

    /// Sets whether the host may run several calls of the target at a time. Default: as for the module.
    public func concurrency(_ concurrency: Concurrency) -> Self {
        modified(self) { $0.declaration.concurrency = concurrency }
    }

    public func add(to module: ModuleDescription) { declaration.add(to: module) }
}

extension Target where Instance == Never {
    /// Declares a target whose actions need no instance.
    public init(_ name: String, @ActionBuilder<Never> actions: () -> [ActionDeclaration]) {
        declaration = TargetDeclaration(name: name, make: nil, actions: actions())
    }
}

/// The declaration of a ``Target``, independent of its instance type; see ``ActionDeclaration``.
@usableFromInline struct TargetDeclaration: ManifestPart {
    let name: String
    var summary = ""
    var concurrency: Concurrency?
    var isInstancePerCall = false
    /// Makes an instance, and returns a pointer from `InstanceBox.retained`.
    let make: (@Sendable (HostContext) throws -> UnsafeMutableRawPointer)?
    let actions: [ActionDeclaration]

    @usableFromInline func add(to module: ModuleDescription) {
        var entry = ManifestObject(name: name)
        if !summary.isEmpty { entry.add("summary", .string(summary)) }
        if let concurrency { entry.add("concurrency", .string(concurrency.rawValue)) }
        if let make {
            entry.add("instance", .string(isInstancePerCall ? "perCall" : "shared"))
            module.addFactory(name, make)
        }
        entry.add("actions", module.add(actions, prefix: name + "/"))
        module.targets.append(entry.json)
    }
}

/// A type of objects that actions return: references with actions of their own.
///
///     ObjectType("Cursor", Cursor.self) {
///         Action("next", .instance()) { cursor in cursor.next() }
///     }
///
/// An action makes such an object with ``HostContext/object(_:)``.
public struct ObjectType<Instance: Sendable>: ManifestPart {
    @usableFromInline let declaration: ObjectTypeDeclaration

    /// Declares a type of object.
    ///
    /// - Parameters:
    ///   - name: The name of the type, `[A-Za-z_][A-Za-z0-9_.-]*`, unique in the module.
    ///   - type: The Swift type behind the objects.
    ///   - actions: The actions of an object.
    public init(_ name: String, _ type: Instance.Type, @ActionBuilder<Instance> actions: () -> [ActionDeclaration]) {
        declaration = ObjectTypeDeclaration(
            name: name, instanceType: ObjectIdentifier(Instance.self), actions: actions())
    }

    public func add(to module: ModuleDescription) { declaration.add(to: module) }
}

/// The declaration of an ``ObjectType``, independent of the Swift type behind it; see ``ActionDeclaration``.
@usableFromInline struct ObjectTypeDeclaration: ManifestPart {
    let name: String
    let instanceType: ObjectIdentifier
    let actions: [ActionDeclaration]

    @usableFromInline func add(to module: ModuleDescription) {
        ObjectTypeNames.add(name, for: instanceType)
        module.types.append(json(module.add(actions, prefix: name + "#")))
    }

    /// The declaration as JSON, with the declarations of its actions.
    func json(_ actions: [String]) -> String {
        var entry = ManifestObject(name: name)
        entry.add("actions", actions)
        return entry.json
    }
}
