import PluginABI
import Synchronization

extension HostTable {
    /// The extension for the configuration of modules.
    nonisolated(unsafe) static let configuration = UnsafePointer.immortal(
        plugin_configuration(size: UInt32(MemoryLayout<plugin_configuration>.size), reserved: 0) {
            host, receiver, data in
            let generation = caller(host).takeUnretainedValue()
            let present = generation.core.moduleConfiguration.withLock { $0[generation.name] } ?? [:]
            func lend(_ value: Value) throws(PluginError) {
                try value.lend { value in withUnsafePointer(to: value) { receiver?(data, $0) } }
            }
            // A configuration that cannot be passed on (nested too deeply) counts as empty.
            if (try? lend(present)) == nil { try? lend([:]) }
        })
}
