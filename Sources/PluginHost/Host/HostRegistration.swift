public import PluginABI

extension PluginHost {
    /// Registers a module that is part of the program. Its targets, routes and services pass the same checks and enter
    /// the same table as those of a file. Works before and after ``start()``.
    ///
    ///     try host.register(Shop.self)
    ///
    /// - Parameter module: The type that a shared library with this module would export.
    /// - Throws: The errors of ``register(_:)-(Manifest)``.
    public func register(_ module: any Module.Type) throws(PluginError) { try register(module.manifest) }

    /// Registers everything that a manifest declares, or, if that fails, nothing.
    ///
    ///     try host.register(Manifest("Clock", version: "1.0.0") {
    ///         Target("Clock") {
    ///             Action("year") { 2026 }
    ///         }
    ///     })
    ///
    /// The module's `setUp` and `init` run before it can be called, and can refuse the registration; then its
    /// `didStart` runs. Modules that wait for it are started. The memory that a registration takes is never freed, like
    /// the code of a module.
    ///
    /// - Parameter manifest: A manifest whose name is not that of another module.
    /// - Throws: ``/PluginABI/PluginError/Code/invalidManifest``; ``/PluginABI/PluginError/Code/conflict``, naming both
    ///   sides, if another module has the same name, target, route or service;
    ///   ``/PluginABI/PluginError/Code/activationFailed``, with the message of the error, if `setUp` or `init` fails;
    ///   ``/PluginABI/PluginError/Code/circularWait`` if called by code that runs during a change of modules, such as a
    ///   `setUp`; ``/PluginABI/PluginError/Code/hostStopped``.
    public func register(_ manifest: Manifest) throws(PluginError) { try lifecycle.register(manifest.export()) }

    /// Registers a module by its description in the binary interface, as the entry function of a shared library returns
    /// it. This is meant for modules whose manifest is known only at run time, such as those that stand for modules of
    /// other hosts, and for modules that are written against the C header.
    ///
    /// - Parameters:
    ///   - description: The description. It, and all that it points to, must live as long as the process.
    ///   - replaces: Whether it replaces a module of the same name that the program has registered, if there is one.
    ///     All calls then reach either the old module or the new one; if the new one is refused, the old one stays.
    /// - Throws: ``/PluginABI/PluginError/Code/invalidDescription`` and ``/PluginABI/PluginError/Code/incompatible`` if
    ///   the description cannot be used; the errors of ``register(_:)-(Manifest)``.
    public func register(
        _ description: UnsafePointer<plugin_module>, replaces: Bool = false
    ) throws(PluginError) {
        try lifecycle.register(description, replaces: replaces)
    }

    /// Unregisters a module that the program has registered. It gets no new calls from now on; its `tearDown` runs when
    /// its last call has ended and its objects have no holders.
    ///
    /// - Parameter name: The name of a manifest that was registered.
    /// - Returns: Whether there was such a module.
    /// - Throws: ``/PluginABI/PluginError/Code/circularWait`` if called by code that runs during a change of modules.
    @discardableResult
    public func unregister(_ name: String) throws(PluginError) -> Bool { try lifecycle.unregister(name) }
}
