/// The manifest of a module: its name, its version, and what it offers.
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
    private(set) var start = Start.automatic
    private(set) var isStateless = false
    /// Makes the parts. The closure runs for each description, so the parts need not be kept.
    let parts: @Sendable () -> [any ManifestPart]

    /// Makes a manifest.
    ///
    /// - Parameters:
    ///   - name: The module's name, `[A-Za-z_][A-Za-z0-9_.-]*`, unique in a host.
    ///   - version: The module's version, according to Semantic Versioning 2.0.
    ///   - parts: The targets, object types, hooks and other parts. The closure runs whenever the module is described:
    ///     once for a file, once for each host in which a manifest is registered, and once more when a tool asks for the
    ///     types of the module.
    public init(_ name: String, version: String, @ManifestBuilder parts: @escaping @Sendable () -> [any ManifestPart]) {
        (self.name, self.version, self.parts) = (name, version, parts)
    }

    /// Adds one sentence about the module.
    public func summary(_ text: String) -> Self { modified(self) { $0.summary = text } }

    /// Sets whether the host may run several calls of the module at a time. Default: ``Concurrency/concurrent``.
    public func concurrency(_ concurrency: Concurrency) -> Self { modified(self) { $0.concurrency = concurrency } }

    /// Sets the level, which determines the position of the module in the order of hooks and events. Default:
    /// ``Level/normal``.
    public func level(_ level: Level) -> Self { modified(self) { $0.level = level } }

    /// Sets the priority: among modules of one level, those with a higher priority come first. Default: 0.
    public func priority(_ priority: Int) -> Self { modified(self) { $0.priority = priority } }

    /// Declares that the module owns something that only one generation can have: a port, a lock, a device. When a new
    /// file replaces the module, its `On(.suspend)` releases the resource before the `init` of the new generation, and
    /// its `On(.unsuspend)` acquires it again if the new generation fails. The module must have both hooks.
    public func exclusive() -> Self { modified(self) { $0.isExclusive = true } }

    /// Sets when the module starts in a host that starts modules when they are first needed. Default:
    /// ``Start/automatic``.
    public func start(_ start: Start) -> Self { modified(self) { $0.start = start } }

    /// Declares that the module keeps nothing between calls that it would miss. If the module runs in a process of its
    /// own and starts when it is first needed, the host may end the process while the module is idle, after `willStop`
    /// and `tearDown`; the next call starts the module again. No process ends while an object or callback of the module
    /// is held, or the module holds one.
    public func stateless() -> Self { modified(self) { $0.isStateless = true } }
}

/// When a module starts in a host that starts modules when they are first needed.
public enum Start: String, Sendable {
    /// The module starts with the host if it has the hook `init` or `didStart`, is exclusive, or subscribes to events
    /// of the host; otherwise when it is first needed.
    case automatic
    /// The module starts with the host.
    case eager
    /// The module starts when it is first needed: by a call, a URL, a service, an event, or a module that requires it.
    case lazy
}

/// A stage of the start: modules of the level ``Level/basic`` come before those of the level ``Level/normal``.
public enum Level: String, Sendable {
    /// Modules that other modules build on: logs, stores, settings.
    case basic
    /// All other modules.
    case normal
}

/// Whether calls may run at the same time.
public enum Concurrency: String, Sendable {
    /// Any number of calls run at the same time, on any threads.
    case concurrent
    /// One call runs at a time; others wait. A circular wait ends with the error ``PluginError/Code/circularWait``.
    case serial
}

/// A part of a manifest: a ``Target``, an ``ObjectType``, a hook (``On``), a requirement (``Requires``) and so on.
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
