public import PluginABI

extension PluginHost {
    /// A context for calls to fresh instances: each call made through it gets its own instance of the target, whatever
    /// the manifest declares. The instance is destroyed when the call has ended.
    ///
    ///     try host.fresh.perform("Counter", "add", ["n": 1])
    public var fresh: HostContext { program.fresh }

    /// Releases the instance that the calls of a target share. The next call makes another one; the old one is
    /// destroyed when the calls that run now have ended.
    ///
    /// - Parameter target: The name of the target.
    /// - Returns: Whether there was an instance. A target that has not been called yet has none.
    /// - Throws: ``/PluginABI/PluginError/Code/unknownTarget``.
    @discardableResult
    public func release(_ target: String) throws(PluginError) -> Bool {
        try calls.releaseInstance(of: target)
    }
}
