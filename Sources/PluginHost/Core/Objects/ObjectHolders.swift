import Synchronization

/// The modules and the program that hold an object, for the status. Counts what a module's own code holds, not what the
/// host holds during a call. Exact for up to three holders that each hold the object up to 65,535 times.
struct ObjectHolders: ~Copyable {
    // A generation, which is never freed, in the upper 48 bits, and how often it holds the object; 0 if free.
    private let first = Atomic<UInt64>(0)
    private let second = Atomic<UInt64>(0)
    private let third = Atomic<UInt64>(0)

    private static let countMask: UInt64 = 0xFFFF

    private static func key(_ holder: Unmanaged<Generation>) -> UInt64 {
        UInt64(UInt(bitPattern: holder.toOpaque())) << 16
    }

    /// Removes all holders. Must be called only before the object has a holder.
    func removeAll() {
        first.store(0, ordering: .relaxed)
        second.store(0, ordering: .relaxed)
        third.store(0, ordering: .relaxed)
    }

    /// Adds one hold.
    func add(_ holder: Unmanaged<Generation>) {
        let key = Self.key(holder)
        if Self.change(first, key, by: 1) || Self.change(second, key, by: 1) || Self.change(third, key, by: 1) {
            return
        }
        _ = Self.claim(first, key) || Self.claim(second, key) || Self.claim(third, key)
    }

    /// Removes one hold, if it was added.
    func remove(_ holder: Unmanaged<Generation>) {
        let key = Self.key(holder)
        _ = Self.change(first, key, by: -1) || Self.change(second, key, by: -1) || Self.change(third, key, by: -1)
    }

    /// The holders.
    var all: [Generation] {
        [first.load(ordering: .relaxed), second.load(ordering: .relaxed), third.load(ordering: .relaxed)].compactMap {
            UnsafeRawPointer(bitPattern: UInt($0 >> 16)).map {
                Unmanaged<Generation>.fromOpaque($0).takeUnretainedValue()
            }
        }
    }

    private static func claim(_ entry: borrowing Atomic<UInt64>, _ key: UInt64) -> Bool {
        entry.compareExchange(expected: 0, desired: key | 1, ordering: .relaxed).exchanged
    }

    private static func change(_ entry: borrowing Atomic<UInt64>, _ key: UInt64, by difference: Int) -> Bool {
        var word = entry.load(ordering: .relaxed)
        while word != 0, word & ~countMask == key {
            let count = Int(word & countMask) + difference
            guard count <= Int(countMask) else { return true }
            let desired = count == 0 ? 0 : key | UInt64(count)
            let (done, seen) = entry.weakCompareExchange(expected: word, desired: desired, ordering: .relaxed)
            if done { return true }
            word = seen
        }
        return false
    }
}
