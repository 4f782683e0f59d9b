import CPluginABI
import PluginABI
import Synchronization

/// Makes the instances of one target: one that is shared, on first use and once, or one for each call.
final class InstanceProvider: Sendable {
    let isShared: Bool
    private nonisolated(unsafe) let factory: plugin_factory  // Points to what lives as long as the process.
    private let target: String
    private let shared = Atomic<UInt>(0)
    /// Held by the call that makes the shared instance.
    private let making: SerialGate

    init(_ factory: plugin_factory, target: String, isShared: Bool) {
        self.factory = factory
        self.target = target
        self.isShared = isShared
        making = SerialGate(owner: "The making of the instance of target \(target)", spansReplies: false)
    }

    /// The shared instance, for a call that is open.
    ///
    /// - Throws: `instanceFailed`, unless the factory has rejected the call with an error of its own.
    func instance(for record: CallRecord, _ call: UnsafePointer<plugin_call>) throws(PluginError)
        -> UnsafeMutableRawPointer
    {
        if let made = UnsafeMutableRawPointer(bitPattern: shared.load(ordering: .acquiring)) { return made }
        try making.enter(record)
        defer { making.leave() }
        if let made = UnsafeMutableRawPointer(bitPattern: shared.load(ordering: .acquiring)) { return made }
        let made = try make(call)
        shared.store(UInt(bitPattern: made), ordering: .releasing)
        return made
    }

    /// An instance of its own for a call that is open.
    ///
    /// - Throws: as ``instance(for:_:)``.
    func make(_ call: UnsafePointer<plugin_call>) throws(PluginError) -> UnsafeMutableRawPointer {
        guard let made = factory.make(factory.data, call) else {
            throw PluginError(.instanceFailed, "The instance of target \(target) could not be made.")
        }
        return made
    }

    func destroy(_ instance: UnsafeMutableRawPointer) { factory.destroy?(factory.data, instance) }

    /// Lets go of the shared instance, when no call can come any more.
    func destroyShared() {
        let made = shared.exchange(0, ordering: .acquiringAndReleasing)
        if let made = UnsafeMutableRawPointer(bitPattern: made) { destroy(made) }
    }
}
