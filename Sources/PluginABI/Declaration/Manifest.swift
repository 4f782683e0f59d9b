/// What a module says about itself: its name, its version, and what it offers.
///
///     static let manifest = Manifest("Shop", version: "1.0.0") {
///         Target("Cart") {
///             Action("total") { 42 }
///         }
///     }
public struct Manifest: Sendable {
    package let name: String
    let version: String
    private(set) var summary = ""
    private(set) var concurrency = Concurrency.concurrent
    private(set) var level = Level.normal
    private(set) var priority = 0
    private(set) var isExclusive = false
    /// Made anew for each description, so that nothing of them stays when there is one.
    let parts: @Sendable () -> [any ManifestPart]

    /// Makes a manifest.
    ///
    /// - Parameters:
    ///   - name: The module's name, `[A-Za-z_][A-Za-z0-9_.-]*`, unique in a host.
    ///   - version: A version by the rules of Semantic Versioning 2.0.
    ///   - parts: The targets, object types and hooks. They are made, with all that is made in the braces, whenever the
    ///     module is described: once for a file, and for each host that a manifest is registered in.
    public init(_ name: String, version: String, @ManifestBuilder parts: @escaping @Sendable () -> [any ManifestPart]) {
        self.name = name
        self.version = version
        self.parts = parts
    }

    /// One sentence about the module.
    public func summary(_ text: String) -> Self { modified(self) { $0.summary = text } }

    /// Whether the host may run several calls of the module at a time. Default: it may.
    public func concurrency(_ concurrency: Concurrency) -> Self { modified(self) { $0.concurrency = concurrency } }
}

extension Manifest {
    /// When the module's turn comes, in hooks and events. Default: ``Level/normal``.
    public func level(_ level: Level) -> Self { modified(self) { $0.level = level } }

    /// Among modules of one level, those with a higher number have their turn first. Default: 0.
    public func priority(_ priority: Int) -> Self { modified(self) { $0.priority = priority } }

    /// Says that the module owns something which only one generation can have: a port, a lock, a device. When a new file
    /// replaces it, its `On(.suspend)` lets go of that before the new one's `init`, and its `On(.unsuspend)` takes it back
    /// if the new one fails. It must have both.
    public func exclusive() -> Self { modified(self) { $0.isExclusive = true } }
}

/// A stage of the start: modules of the first level have their turn before those of the second.
public enum Level: String, Sendable {
    /// What others build on: logs, stores, settings.
    case basic
    /// Everything else.
    case normal
}

/// Whether calls may run at the same time.
public enum Concurrency: String, Sendable {
    /// Any number, on any threads.
    case concurrent
    /// One at a time; others wait. A wait in a circle is the error ``PluginError/Code/circularWait``.
    case serial
}

/// Something that stands in a manifest: a ``Target``, an ``ObjectType``, a hook (``On``), a requirement (``Requires``).
public protocol ManifestPart: Sendable {
    /// Adds the part to the module that is being described.
    func add(to module: ModuleDescription)
}

/// Returns a changed copy of a declaration, for its modifiers.
func modified<Declaration>(_ declaration: Declaration, _ change: (inout Declaration) -> Void) -> Declaration {
    var copy = declaration
    change(&copy)
    return copy
}
