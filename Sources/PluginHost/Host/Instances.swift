public import PluginABI

extension PluginHost {
    /// The host, but for each call that is made through it, the target gets an instance of its own, whatever its manifest
    /// says. It is destroyed when the call has ended.
    ///
    ///     try host.fresh.perform("Counter", "add", ["n": 1])
    public var fresh: HostContext { program.fresh }

    /// Drops the instance that the calls of a target share. The next call makes another; the old one is destroyed when the
    /// calls that run now have ended.
    ///
    /// - Parameter target: The name of the target.
    /// - Returns: Whether there was one: a target that has not been called yet has none.
    /// - Throws: ``/PluginABI/PluginError/Code/unknownTarget``.
    @discardableResult
    public func release(_ target: String) throws(PluginError) -> Bool {
        try calls.releaseInstance(of: target)
    }
}
