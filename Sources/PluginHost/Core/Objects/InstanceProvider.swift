import CPluginHost
import PluginABI
import Synchronization

/// The source of the instances of one target: either one shared instance, made on first use, or one for each call.
final class InstanceProvider: Sendable {
    let isShared: Bool
    private nonisolated(unsafe) let factory: plugin_factory  // Its pointers are valid as long as the process lives.
    private let target: String
    private let shared = Atomic<UInt>(0)
    private let released = Mutex<[Released]>([])
    /// The gate that a call enters to make the shared instance.
    private let making: SerialGate

    init(_ factory: plugin_factory, target: String, isShared: Bool) {
        (self.factory, self.target, self.isShared) = (factory, target, isShared)
        making = SerialGate(owner: "The creation of the instance of target \(target)", spansReplies: false)
    }

    /// Returns the shared instance, for a call that is open.
    ///
    /// - Throws: `instanceFailed`, unless the factory has already rejected the call with an error of its own.
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

    /// Makes a new instance for a call that is open.
    ///
    /// - Throws: `instanceFailed`, unless the factory has already rejected the call with an error of its own.
    func make(_ call: UnsafePointer<plugin_call>) throws(PluginError) -> UnsafeMutableRawPointer {
        guard let made = factory.make(factory.data, call) else {
            throw PluginError(.instanceFailed, "The factory of the target \(target) made no instance.")
        }
        return made
    }

    func destroy(_ instance: UnsafeMutableRawPointer) { factory.destroy?(factory.data, instance) }

    /// Whether there is a shared instance, or one that was released and is not destroyed yet.
    var hasInstances: Bool { shared.load(ordering: .acquiring) != 0 || released.withLock { !$0.isEmpty } }

    /// Destroys the shared instance and the released ones. Must be called only when no further call can arrive.
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

    /// An instance that new calls no longer receive, and the calls that may still use it.
    private struct Released: @unchecked Sendable {  // Records are never freed, and read atomically.
        let pointer: UnsafeMutableRawPointer
        let calls: [(record: CallRecord, token: plugin_token)]

        func isUnused(by provider: InstanceProvider) -> Bool {
            calls.allSatisfy { $0.record.token != $0.token || $0.record.endpoint?.instances !== provider }
        }
    }

    /// Releases the shared instance: the next call makes another one, and the released one is destroyed when the calls
    /// that may use it have ended. Returns whether there was a shared instance.
    func release() -> Bool {
        let made = shared.exchange(0, ordering: .acquiringAndReleasing)
        guard let made = UnsafeMutableRawPointer(bitPattern: made) else { return false }
        // A call is entered in its record before it receives the instance, so every call that received it is visible
        // now.
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

    /// Checks repeatedly, at growing intervals, until no call uses the released instances.
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
