public import PluginABI

extension PluginHost {
    /// Starts an isolated module again, in a new process, from the same file. It hands its state over if it can, as when a
    /// new version replaces it. A module that has failed is tried once more. The number of crashes after which a module
    /// has failed is not reset.
    ///
    /// - Parameter name: The name of a module that runs in a process of its own.
    /// - Throws: ``/PluginABI/PluginError/Code/unknownModule`` if there is no such module, or it is not isolated; the
    ///   error of its start, in which case the module continues to serve;
    ///   ``/PluginABI/PluginError/Code/circularWait`` if called by code that runs during a change of modules;
    ///   ``/PluginABI/PluginError/Code/hostStopped``.
    public func restart(_ name: String) throws(PluginError) { try lifecycle.restart(name) }
}
