import CPluginABI
import PluginABI
import Synchronization

/// What an object can do: its actions, in the generation that made it.
final class ObjectTypeEntry: Sendable {
    let name: String
    let actions: [String: Endpoint]
    let generation: Generation
    /// Who destroys the instances, where the objects bring no function for it.
    let instances: InstanceProvider?

    init(
        name: String, actions: [String: Endpoint], generation: Generation, instances: InstanceProvider? = nil
    ) {
        self.name = name
        self.actions = actions
        self.generation = generation
        self.instances = instances
    }
}

/// The objects of the process, counted by reference.
///
/// A handle is a number: the place of a slot, and how often the slot was used. Slots are never freed, so that a handle
/// that is over is found, whoever uses it and however late.
enum ObjectTable {
    private struct Slot: ~Copyable {
        /// Sequence number (40 bits) and holders (24 bits).
        let state = Atomic<UInt64>(1 << 24)
        // Written before the slot gets its first holder, read only while it has one.
        var type: ObjectTypeEntry?
        var instance: UnsafeMutableRawPointer?
        var destroy: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
        /// Whether somebody has destroyed the instance, or is about to.
        let isDestroyed = Atomic(false)
        /// Where events go on that it does not handle; 0 for none. It is not held, and may be gone.
        let parent = Atomic<plugin_object>(0)
    }

    private static let chunkSize = 1024
    private static let chunkMax = 16384
    private static let holdersMask: UInt64 = (1 << 24) - 1
    private static let sequenceMask: UInt64 = (1 << 40) - 1

    /// The slots in chunks, and which are free. The directory is written under the lock before a handle can name it.
    private struct Space {
        var free: [UInt32] = []
        var chunkCount = 0
    }
    private static let space = Mutex(Space())
    private nonisolated(unsafe) static let directory: UnsafeMutablePointer<Atomic<UInt>> = {
        let directory = UnsafeMutablePointer<Atomic<UInt>>.allocate(capacity: chunkMax)
        for index in 0..<chunkMax { (directory + index).initialize(to: Atomic(0)) }
        return directory
    }()

    private static func slot(_ index: UInt32) -> UnsafeMutablePointer<Slot>? {
        guard index < chunkMax * chunkSize else { return nil }
        let chunk = directory[Int(index) / chunkSize].load(ordering: .acquiring)
        guard let raw = UnsafeMutableRawPointer(bitPattern: chunk) else { return nil }
        return raw.assumingMemoryBound(to: Slot.self) + Int(index) % chunkSize
    }

    /// A slot of the handle, if the handle is not over.
    private static func slot(of handle: plugin_object) -> UnsafeMutablePointer<Slot>? {
        slot(UInt32(truncatingIfNeeded: handle >> 40))
    }

    /// Makes an object with one holder; 0 when there are 16 million.
    static func create(
        _ type: ObjectTypeEntry, _ instance: UnsafeMutableRawPointer?,
        _ destroy: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
    ) -> plugin_object {
        let free: UInt32? = space.withLock { space in
            if space.free.isEmpty, space.chunkCount < chunkMax {
                let chunk = UnsafeMutablePointer<Slot>.allocate(capacity: chunkSize)
                for place in 0..<chunkSize { (chunk + place).initialize(to: Slot()) }
                directory[space.chunkCount].store(UInt(bitPattern: chunk), ordering: .releasing)
                let first = UInt32(space.chunkCount * chunkSize)
                space.free.append(contentsOf: (first..<first + UInt32(chunkSize)).reversed())
                space.chunkCount += 1
            }
            return space.free.popLast()
        }
        guard let index = free, let slot = slot(index) else { return 0 }
        slot.pointee.type = type
        slot.pointee.instance = instance
        slot.pointee.destroy = destroy
        slot.pointee.isDestroyed.store(false, ordering: .relaxed)
        slot.pointee.parent.store(0, ordering: .relaxed)
        type.generation.objectCount.add(1, ordering: .relaxed)
        let sequence = slot.pointee.state.load(ordering: .relaxed) >> 24
        slot.pointee.state.store(sequence << 24 | 1, ordering: .releasing)
        return UInt64(index) << 40 | sequence
    }

    /// Makes an object whose instance is an object of Swift's, which it keeps alive.
    static func create(_ type: ObjectTypeEntry, holding instance: AnyObject) -> plugin_object {
        create(type, Unmanaged.passRetained(instance).toOpaque()) { Unmanaged<AnyObject>.fromOpaque($0!).release() }
    }

    /// Adds a holder; false for a handle that nobody holds any more.
    static func retain(_ handle: plugin_object) -> Bool {
        guard let slot = slot(of: handle) else { return false }
        var state = slot.pointee.state.load(ordering: .relaxed)
        while state >> 24 == handle & sequenceMask, state & holdersMask != 0, state & holdersMask != holdersMask {
            let (done, seen) = slot.pointee.state.weakCompareExchange(
                expected: state, desired: state + 1, ordering: .acquiringAndReleasing)
            if done { return true }
            state = seen
        }
        return false
    }

    /// Removes a holder; the last one destroys the object. False for a handle that nobody holds any more.
    static func release(_ handle: plugin_object) -> Bool {
        guard let slot = slot(of: handle) else { return false }
        var state = slot.pointee.state.load(ordering: .relaxed)
        while state >> 24 == handle & sequenceMask, state & holdersMask != 0 {
            let (done, seen) = slot.pointee.state.weakCompareExchange(
                expected: state, desired: state - 1, ordering: .acquiringAndReleasing)
            if done {
                if state & holdersMask == 1 { free(slot, handle) }
                return true
            }
            state = seen
        }
        return false
    }

    private static func free(_ slot: UnsafeMutablePointer<Slot>, _ handle: plugin_object) {
        let type = slot.pointee.type
        let instance = takeInstance(slot)
        slot.pointee.type = nil
        slot.pointee.instance = nil
        slot.pointee.destroy = nil
        let next = ((handle & sequenceMask) + 1) & sequenceMask
        slot.pointee.state.store(max(next, 1) << 24, ordering: .releasing)
        space.withLock { $0.free.append(UInt32(truncatingIfNeeded: handle >> 40)) }
        instance?()
        type?.generation.objectCount.subtract(1, ordering: .relaxed)
    }

    /// What destroys the instance, for the first who asks.
    private static func takeInstance(_ slot: UnsafeMutablePointer<Slot>) -> (() -> Void)? {
        guard !slot.pointee.isDestroyed.exchange(true, ordering: .acquiringAndReleasing) else { return nil }
        let (type, instance, destroy) = (slot.pointee.type, slot.pointee.instance, slot.pointee.destroy)
        return {
            destroy?(instance)
            if let instance { type?.instances?.destroy(instance) }
        }
    }

    /// Destroys the instances of a generation's objects while their handles are still held. Only for one that is revoked
    /// and runs no calls.
    static func destroyInstances(of generation: Generation) {
        forEachLiveSlot { slot in
            if slot.pointee.type?.generation === generation { takeInstance(slot)?() }
        }
    }

    /// Lends the types of all objects that somebody holds, one after the other.
    static func forEachLive(_ body: (ObjectTypeEntry) -> Void) {
        forEachLiveSlot { slot in slot.pointee.type.map(body) }
    }

    /// Holds each object while it is lent.
    private static func forEachLiveSlot(_ body: (UnsafeMutablePointer<Slot>) -> Void) {
        for index in 0..<UInt32(space.withLock { $0.chunkCount } * chunkSize) {
            guard let slot = slot(index) else { continue }
            let state = slot.pointee.state.load(ordering: .acquiring)
            let handle = UInt64(index) << 40 | state >> 24
            guard state & holdersMask != 0, retain(handle) else { continue }
            body(slot)
            _ = release(handle)
        }
    }

    /// Whether somebody holds the object now.
    static func isHeld(_ handle: plugin_object) -> Bool {
        guard let state = slot(of: handle)?.pointee.state.load(ordering: .acquiring) else { return false }
        return state >> 24 == handle & sequenceMask && state & holdersMask != 0
    }

    /// What an object can do, and its instance; only while the caller holds it.
    static func contents(of handle: plugin_object) -> (ObjectTypeEntry, UnsafeMutableRawPointer?) {
        let slot = slot(of: handle)!
        return (slot.pointee.type!, slot.pointee.instance)
    }

    /// The instance of an object; only while the caller holds it.
    @inline(__always)
    static func instance(of handle: plugin_object) -> UnsafeMutableRawPointer? { slot(of: handle)!.pointee.instance }

    // MARK: Parents

    /// Held while a parent is set, so that no two threads can close a circle together.
    private static let parents = Mutex<Void>(())

    /// The parent of an object that the caller holds; 0 for none. It may be gone.
    static func parent(of handle: plugin_object) -> plugin_object {
        slot(of: handle)?.pointee.parent.load(ordering: .acquiring) ?? 0
    }

    /// Sets the parent of an object that the caller holds. False when the object is the parent, or above it.
    static func setParent(of handle: plugin_object, to parent: plugin_object) -> Bool {
        // Released without the lock: a module may be called to destroy an instance.
        var retained: [plugin_object] = []
        defer { for object in retained { _ = release(object) } }
        return parents.withLock { _ in
            var above = parent
            while above != 0, above != handle, retain(above) {
                retained.append(above)
                above = self.parent(of: above)
            }
            guard above != handle else { return false }
            slot(of: handle)?.pointee.parent.store(parent, ordering: .releasing)
            return true
        }
    }
}
