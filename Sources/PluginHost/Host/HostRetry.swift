public import PluginABI

extension PluginHost {
    /// Loads a failed module again and starts it, although its file has not changed. Blocks until it has started.
    ///
    ///     try host.retry("Accounts")
    ///
    /// For a module that could not start for a reason outside its file, such as a database that did not answer. A
    /// quarantined file stays quarantined (see <doc:TrustAndBlame>).
    ///
    /// - Parameter name: The name of the module, or the path of its file, as in ``ModuleStatus/file``.
    /// - Throws: ``/PluginABI/PluginError/Code/unknownModule`` if no file of this module has failed; the error with
    ///   which it fails again; ``/PluginABI/PluginError/Code/circularWait`` if called by code that runs during a change
    ///   of modules; ``/PluginABI/PluginError/Code/hostStopped``.
    public func retry(_ name: String) throws(PluginError) { try lifecycle.retry(name) }
}
