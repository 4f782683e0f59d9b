package import PluginABI

extension PluginHost {
    /// Scans the folders now, and loads, replaces and removes modules accordingly. Returns when that is done.
    ///
    /// - Throws: ``/PluginABI/PluginError/Code/hostStopped``;
    ///   ``/PluginABI/PluginError/Code/circularWait`` if called by code that runs during a change of modules.
    package func updateFolders() throws(PluginError) { try lifecycle.update() }
}
