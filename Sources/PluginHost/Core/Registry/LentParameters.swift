import PluginABI

extension Parameters {
    /// Lends the entries in their form in the binary interface.
    @inline(__always)
    func lend<Result>(
        _ body: (UnsafeBufferPointer<plugin_entry>) throws(PluginError) -> Result
    ) throws(PluginError) -> Result {
        try withEntries { (entries, count) throws(PluginError) in
            try body(UnsafeBufferPointer(start: entries, count: count))
        }
    }
}
