/// A named group of actions, perhaps with an instance that they work on.
public struct Target<Instance: Sendable>: ManifestPart {
    @usableFromInline private(set) var declaration: TargetDeclaration

    /// A target whose actions get an instance, as `.instance()`. It is made on first use, once, and shared by all
    /// calls, which may run concurrently.
    ///
    /// - Parameters:
    ///   - name: `[A-Za-z_][A-Za-z0-9_.-]*`, unique in a host.
    ///   - make: Makes the instance. What it throws, the caller receives.
    ///   - actions: What the target offers.
    public init(
        _ name: String, make: @escaping @Sendable (HostContext) throws -> Instance,
        @ActionBuilder<Instance> actions: () -> [ActionDeclaration]
    ) {
        declaration = TargetDeclaration(name: name, make: { InstanceBox.retained(try make($0)) }, actions: actions())
    }

    /// A target whose actions get an instance, made without the context.
    public init(
        _ name: String, make: @escaping @Sendable () throws -> Instance,
        @ActionBuilder<Instance> actions: () -> [ActionDeclaration]
    ) {
        self.init(name, make: { _ in try make() }, actions: actions)
    }

    /// Makes an instance for every call, instead of one that is shared.
    public func instancePerCall() -> Self { modified(self) { $0.declaration.isInstancePerCall = true } }

    /// One sentence about the target.
    public func summary(_ text: String) -> Self { modified(self) { $0.declaration.summary = text } }

    /// Whether the host may run several calls of the target at a time. Default: as the module says.
    public func concurrency(_ concurrency: Concurrency) -> Self {
        modified(self) { $0.declaration.concurrency = concurrency }
    }

    public func add(to module: ModuleDescription) { declaration.add(to: module) }
}

extension Target where Instance == Never {
    /// A target whose actions need no instance.
    public init(_ name: String, @ActionBuilder<Never> actions: () -> [ActionDeclaration]) {
        declaration = TargetDeclaration(name: name, make: nil, actions: actions())
    }
}

/// What a ``Target`` declares, whatever its instance is: see ``ActionDeclaration``.
@usableFromInline struct TargetDeclaration: ManifestPart {
    let name: String
    var summary = ""
    var concurrency: Concurrency?
    var isInstancePerCall = false
    /// Gives a reference to an ``InstanceBox``.
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

/// A type of object that actions return: a reference with actions of its own.
///
///     ObjectType("Cursor", Cursor.self) {
///         Action("next", .instance()) { cursor in cursor.next() }
///     }
///
/// An action makes one with ``HostContext/object(_:_:)``.
public struct ObjectType<Instance: Sendable>: ManifestPart {
    @usableFromInline let declaration: ObjectTypeDeclaration

    /// Declares a type of object.
    ///
    /// - Parameters:
    ///   - name: `[A-Za-z_][A-Za-z0-9_.-]*`, unique in the module.
    ///   - type: The Swift type behind the objects.
    ///   - actions: What can be done with an object.
    public init(_ name: String, _ type: Instance.Type, @ActionBuilder<Instance> actions: () -> [ActionDeclaration]) {
        declaration = ObjectTypeDeclaration(name: name, actions: actions())
    }

    public func add(to module: ModuleDescription) { declaration.add(to: module) }
}

/// What an ``ObjectType`` declares, whatever Swift type is behind it: see ``ActionDeclaration``.
@usableFromInline struct ObjectTypeDeclaration: ManifestPart {
    let name: String
    let actions: [ActionDeclaration]

    @usableFromInline func add(to module: ModuleDescription) {
        var entry = ManifestObject(name: name)
        entry.add("actions", module.add(actions, prefix: name + "#"))
        module.types.append(entry.json)
    }
}
