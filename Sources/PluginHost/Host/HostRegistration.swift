public import PluginABI
import PluginFile

extension PluginHost {
    /// Registers a module that is part of the program: its targets, routes and services, through the same checks and in
    /// the same table as those of a file. Works before and after ``start()``.
    ///
    ///     try host.register(Shop.self)
    ///
    /// - Parameter module: The same type that a shared library would export.
    /// - Throws: As ``register(_:)-(Manifest)``.
    public func register(_ module: any Module.Type) throws(PluginError) { try register(module.manifest) }

    /// Registers what a manifest says, whole or not at all.
    ///
    ///     try host.register(Manifest("Clock", version: "1.0.0") {
    ///         Target("Clock") {
    ///             Action("year") { 2026 }
    ///         }
    ///     })
    ///
    /// Its `setUp` and its `init` run before anybody else can call it, and can refuse; then its `didStart`. What waits for
    /// it is started. What a registration takes is never given back, like the code of a module.
    ///
    /// - Parameter manifest: Its name must not be that of another module.
    /// - Throws: ``/PluginABI/PluginError/Code/invalidManifest``; ``/PluginABI/PluginError/Code/conflict``, naming both
    ///   sides, when another module has the name, a target, a route or a service; what `setUp` throws;
    ///   ``/PluginABI/PluginError/Code/circularWait`` from code that a change of modules runs, such as a `setUp`;
    ///   ``/PluginABI/PluginError/Code/hostStopped``.
    public func register(_ manifest: Manifest) throws(PluginError) { try lifecycle.register(manifest.export()) }

    /// Takes away what the program has registered under a name: no new calls from now on, then its `tearDown`, after the
    /// last call has ended and nobody holds an object of it.
    ///
    /// - Parameter name: The name of a manifest that was registered.
    /// - Returns: Whether there was one.
    /// - Throws: ``/PluginABI/PluginError/Code/circularWait`` from code that a change of modules runs.
    @discardableResult
    public func unregister(_ name: String) throws(PluginError) -> Bool { try lifecycle.unregister(name) }
}
