import CPluginABI
import CPluginHost

extension HostTable {
    /// The extension of events along a chain.
    nonisolated(unsafe) static let chain: UnsafePointer<plugin_chain> = {
        let chain = UnsafeMutablePointer<plugin_chain>.allocate(capacity: 1)
        chain.initialize(
            to: plugin_chain(
                size: UInt32(MemoryLayout<plugin_chain>.size), reserved: 0,
                receiver: { _, call in CallRecord.object(of: call) },
                set_parent: { _, object, parent in
                    guard ObjectTable.retain(object) else { return PLUGIN_PARENT_GONE }
                    defer { _ = ObjectTable.release(object) }
                    guard parent == 0 || ObjectTable.isHeld(parent) else { return PLUGIN_PARENT_GONE }
                    return ObjectTable.setParent(of: object, to: parent) ? PLUGIN_PARENT_SET : PLUGIN_PARENT_CIRCULAR
                }))
        return UnsafePointer(chain)
    }()
}

extension CallRecord {
    /// The object that a call works on; 0 for a call of a target's action, and for one that is over.
    static func object(of call: plugin_token) -> plugin_object {
        guard call != 0, let record = CallRecord(token: call) else { return 0 }
        let object = record.object
        return record.phase(of: call) == .over ? 0 : object
    }
}
