import CPluginABI
import CPluginHost
import PluginABI
import Synchronization

/// Makes the instances of one target: one that is shared, on first use and once, or one for each call.
final class InstanceProvider: Sendable {
    let isShared: Bool
    private nonisolated(unsafe) let factory: plugin_factory  // Points to what lives as long as the process.
    private let target: String
    private let shared = Atomic<UInt>(0)
    private let released = Mutex<[Released]>([])
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

    /// Lets go of the shared instance, and of those that were released, when no call can come any more.
    func destroyShared() {
        let made = shared.exchange(0, ordering: .acquiringAndReleasing)
        if let made = UnsafeMutableRawPointer(bitPattern: made) { destroy(made) }
        let last = released.withLock { released in
            defer { released = [] }
            return released
        }
        for instance in last { destroy(instance.pointer) }
    }

    // MARK: Release

    /// An instance that the next call does not get, and the calls that may still use it.
    private struct Released: @unchecked Sendable {  // Records are never freed, and read atomically.
        let pointer: UnsafeMutableRawPointer
        let calls: [(record: CallRecord, token: plugin_token)]

        func isUnused(by provider: InstanceProvider) -> Bool {
            calls.allSatisfy { $0.record.token != $0.token || $0.record.endpoint?.instances !== provider }
        }
    }

    /// Drops the shared instance: the next call makes another, and it is destroyed when the calls that run now are over.
    /// Returns whether there was one.
    func release() -> Bool {
        let made = shared.exchange(0, ordering: .acquiringAndReleasing)
        guard let made = UnsafeMutableRawPointer(bitPattern: made) else { return false }
        // A call is entered in its record before it gets the instance. So one that got it is seen now.
        plugin_host_fence_heavy()
        let calls = runningCalls().filter { $0.endpoint?.instances === self }.map { (record: $0, token: $0.token) }
        if calls.isEmpty {
            destroy(made)
        } else {
            released.withLock { $0.append(Released(pointer: made, calls: calls)) }
            destroyReleased(after: 1)
        }
        return true
    }

    /// Looks again and again, ever less often, until nobody uses what was released.
    private func destroyReleased(after milliseconds: Int) {
        ThreadPool.run(after: .milliseconds(milliseconds)) { [self] in
            let (unused, isAnyLeft) = released.withLock { released in
                let unused = released.filter { $0.isUnused(by: self) }
                released.removeAll { instance in unused.contains { $0.pointer == instance.pointer } }
                return (unused, !released.isEmpty)
            }
            for instance in unused { destroy(instance.pointer) }
            if isAnyLeft { destroyReleased(after: min(milliseconds * 2, 50)) }
        }
    }
}
