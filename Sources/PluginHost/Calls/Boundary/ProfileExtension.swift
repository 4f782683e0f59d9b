import PluginABI

extension HostTable {
    /// The extension for marks in the profile.
    nonisolated(unsafe) static let profile = UnsafePointer.immortal(
        plugin_profile(size: UInt32(MemoryLayout<plugin_profile>.size), reserved: 0) { host, name, duration in
            let generation = caller(host).takeUnretainedValue()
            generation.core.profiler.mark(name, module: generation.sourceName, lasting: duration)
        })
}
