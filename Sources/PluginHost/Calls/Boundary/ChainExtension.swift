import CPluginABI

extension HostTable {
    /// The extension for event bubbling.
    nonisolated(unsafe) static let chain = UnsafePointer.immortal(
        plugin_chain(
            size: UInt32(MemoryLayout<plugin_chain>.size), reserved: 0,
            receiver: { _, call in CallRecord.object(of: call) },
            set_parent: { _, object, parent in
                guard ObjectTable.retain(object) else { return PLUGIN_PARENT_GONE }
                defer { _ = ObjectTable.release(object) }
                guard parent == 0 || ObjectTable.isHeld(parent) else { return PLUGIN_PARENT_GONE }
                return ObjectTable.setParent(of: object, to: parent) ? PLUGIN_PARENT_SET : PLUGIN_PARENT_CIRCULAR
            }))
}
