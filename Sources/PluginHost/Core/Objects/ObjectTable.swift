import PluginABI
import Synchronization

/// The type of an object: its actions, in the generation that made it.
final class ObjectTypeEntry: Sendable {
    let name: String
    let actions: [String: Endpoint]
    let generation: Generation
    /// The actions that handle events of the chain by prefix, longer prefixes first.
    let prefixHandlers: [PrefixHandler]
    /// Destroys the instances of objects that have no destroy function of their own.
    let instances: InstanceProvider?
    /// Whether objects of the type are passed as values, rather than kept by the host as handlers.
    let isOfValues: Bool

    init(
        name: String, actions: [String: Endpoint], generation: Generation, prefixHandlers: [PrefixHandler] = [],
        instances: InstanceProvider? = nil, isOfValues: Bool = true
    ) {
        (self.name, self.actions, self.generation, self.instances) = (name, actions, generation, instances)
        self.prefixHandlers = prefixHandlers
        self.isOfValues = isOfValues
    }
}

/// The reference-counted objects of the process.
///
/// A handle is a number: the index of a slot, and a sequence number that counts how often the slot was used. Slots are
/// never freed, so a stale handle is always recognised, even much later.
enum ObjectTable {
    private struct Slot: ~Copyable {
        /// The sequence number (40 bits) and the number of holders (24 bits).
        let state = Atomic<UInt64>(1 << 24)
        // Written before the slot has its first holder, and read only while it has one.
        var type: ObjectTypeEntry?
        var instance: UnsafeMutableRawPointer?
        var destroy: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?
        /// Whether a thread has destroyed the instance, or is about to.
        let isDestroyed = Atomic(false)
        /// The object that receives the events that this one does not handle; 0 if there is none. It is not retained
        /// and may no longer exist.
        let parent = Atomic<plugin_object>(0)
        let holders = ObjectHolders()
    }

    private static let chunkSize = 1024
    private static let chunkMax = 16384
    private static let holdersMask: UInt64 = (1 << 24) - 1
    private static let sequenceMask: UInt64 = (1 << 40) - 1

    /// The free slots and the number of chunks. The directory is written under the lock before a handle can refer to
    /// it.
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

    /// Returns the slot that the handle refers to, whether or not the handle is still valid; `nil` if there is no such
    /// slot.
    private static func slot(of handle: plugin_object) -> UnsafeMutablePointer<Slot>? {
        slot(UInt32(truncatingIfNeeded: handle >> 40))
    }

    /// Creates an object with one holder. Returns 0 if 16 million objects exist.
    ///
    /// - Parameter isHeldByMaker: Whether the holder is the module that the type belongs to, and not the host.
    static func create(
        _ type: ObjectTypeEntry, _ instance: UnsafeMutableRawPointer?,
        _ destroy: (@convention(c) (UnsafeMutableRawPointer?) -> Void)?, isHeldByMaker: Bool = false
    ) -> plugin_object {
        let free: UInt32? = space.withLock { space in
            if space.free.isEmpty, space.chunkCount < chunkMax {
                let chunk = UnsafeMutablePointer<Slot>.allocate(capacity: chunkSize)
                for index in 0..<chunkSize { (chunk + index).initialize(to: Slot()) }
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
        slot.pointee.holders.removeAll()
        if isHeldByMaker { slot.pointee.holders.add(Unmanaged.passUnretained(type.generation)) }
        type.generation.objectCount.add(1, ordering: .relaxed)
        let sequence = slot.pointee.state.load(ordering: .relaxed) >> 24
        slot.pointee.state.store(sequence << 24 | 1, ordering: .releasing)
        return UInt64(index) << 40 | sequence
    }

    /// Creates an object whose instance is a Swift object, which it keeps alive.
    static func create(
        _ type: ObjectTypeEntry, holding instance: AnyObject, isHeldByMaker: Bool = false
    ) -> plugin_object {
        let retained = Unmanaged.passRetained(instance)
        let object = create(
            type, retained.toOpaque(), { Unmanaged<AnyObject>.fromOpaque($0!).release() }, isHeldByMaker: isHeldByMaker)
        if object == 0 { retained.release() }
        return object
    }

    /// Adds a holder. Returns false if the object no longer has one, or has the maximum number of holders.
    static func retain(_ handle: plugin_object) -> Bool {
        slot(of: handle).map { retain(handle, $0) } ?? false
    }

    @inline(__always)
    private static func retain(_ handle: plugin_object, _ slot: UnsafeMutablePointer<Slot>) -> Bool {
        var state = slot.pointee.state.load(ordering: .relaxed)
        while state >> 24 == handle & sequenceMask, state & holdersMask != 0, state & holdersMask != holdersMask {
            let (done, seen) = slot.pointee.state.weakCompareExchange(
                expected: state, desired: state + 1, ordering: .acquiringAndReleasing)
            if done { return true }
            state = seen
        }
        return false
    }

    /// Lends the instance of an object to `body`, and retains the object until `body` returns. Does nothing if the
    /// object no longer has a holder.
    @inline(__always)
    static func lend(_ handle: plugin_object, to body: (UnsafeMutableRawPointer?) -> Void) {
        guard let slot = slot(of: handle), retain(handle, slot) else { return }
        body(slot.pointee.instance)
        _ = release(handle, slot)
    }

    /// Adds a holder: code of this generation.
    static func retain(_ handle: plugin_object, for holder: Unmanaged<Generation>) -> Bool {
        guard retain(handle) else { return false }
        slot(of: handle)?.pointee.holders.add(holder)
        return true
    }

    /// Removes a holder: code of this generation.
    static func release(_ handle: plugin_object, for holder: Unmanaged<Generation>) -> Bool {
        // Done first, because the object may be gone afterwards. If it is already gone and its slot has another object,
        // nothing may change.
        if isHeld(handle) { slot(of: handle)?.pointee.holders.remove(holder) }
        return release(handle)
    }

    /// Removes a holder; removing the last one destroys the object. Returns false if the object no longer has one.
    static func release(_ handle: plugin_object) -> Bool {
        slot(of: handle).map { release(handle, $0) } ?? false
    }

    @inline(__always)
    private static func release(_ handle: plugin_object, _ slot: UnsafeMutablePointer<Slot>) -> Bool {
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

    /// Returns a closure that destroys the instance, or `nil` to every caller but the first.
    private static func takeInstance(_ slot: UnsafeMutablePointer<Slot>) -> (() -> Void)? {
        guard !slot.pointee.isDestroyed.exchange(true, ordering: .acquiringAndReleasing) else { return nil }
        let (type, instance, destroy) = (slot.pointee.type, slot.pointee.instance, slot.pointee.destroy)
        return {
            destroy?(instance)
            if let instance { type?.instances?.destroy(instance) }
        }
    }

    /// Destroys the instances of a generation's objects while the objects still have holders. Only for a generation
    /// that is revoked and runs no calls.
    static func destroyInstances(of generation: Generation) {
        forEachLiveSlot { slot in
            if slot.pointee.type?.generation === generation { takeInstance(slot)?() }
        }
    }

    /// Calls `body` with the type of each object that has a holder, and the modules that hold it, one after the other.
    static func forEachLive(_ body: (ObjectTypeEntry, [Generation]) -> Void) {
        forEachLiveSlot { slot in
            if let type = slot.pointee.type { body(type, slot.pointee.holders.all) }
        }
    }

    /// Calls `body` with the slot of each object that has a holder, and retains the object during that time.
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

    /// Returns whether the object has a holder.
    static func isHeld(_ handle: plugin_object) -> Bool {
        guard let state = slot(of: handle)?.pointee.state.load(ordering: .acquiring) else { return false }
        return state >> 24 == handle & sequenceMask && state & holdersMask != 0
    }

    /// Returns the type of an object and its instance; valid only while the caller retains the object.
    static func contents(of handle: plugin_object) -> (ObjectTypeEntry, UnsafeMutableRawPointer?) {
        let slot = slot(of: handle)!
        return (slot.pointee.type!, slot.pointee.instance)
    }

    // MARK: Parents

    /// Locked while a parent is set, so that two threads cannot close a cycle together.
    private static let parents = Mutex<Void>(())

    /// Returns the parent of an object that the caller retains; 0 if it has none. The parent may no longer exist.
    static func parent(of handle: plugin_object) -> plugin_object {
        slot(of: handle)?.pointee.parent.load(ordering: .acquiring) ?? 0
    }

    /// Sets the parent of an object that the caller retains. Returns false if that would close a cycle: if the object
    /// is the parent, or above the parent.
    static func setParent(of handle: plugin_object, to parent: plugin_object) -> Bool {
        // Released only after unlocking, because that may call a module to destroy an instance.
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
