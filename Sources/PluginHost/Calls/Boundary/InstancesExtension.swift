import PluginABI

extension HostTable {
    /// The extension for instances.
    nonisolated(unsafe) static let instances = UnsafePointer.immortal(
        plugin_instances(size: UInt32(MemoryLayout<plugin_instances>.size), reserved: 0) {
            host, target, completion, data in
            Calls.Receiver(completion, data).receive { () throws(PluginError) in
                try target.check("The name of the target")
                return .bool(try calls(host).releaseInstance(of: target.text))
            }
        })
}

extension Calls {
    /// Releases the instance that the calls of a target share. Returns whether there was one.
    func releaseInstance(of target: String) throws(PluginError) -> Bool {
        let table = registry.table
        if table.contents.known.target(target) != nil { return false }
        guard let entry = table.targets[target] else { throw table.missing(target, "release") }
        return entry.actions.values.first?.instances?.release() ?? false
    }
}
