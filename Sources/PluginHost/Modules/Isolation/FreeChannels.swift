import Synchronization

/// A set of channels of the host, a bit for each. Every call of an isolated module removes one and puts it back; each
/// takes one atomic operation, and no lock.
struct FreeChannels: ~Copyable {
    private let low = Atomic<UInt64>(0)
    private let high = Atomic<UInt64>(0)

    /// The number of channels that the set has bits for.
    static let capacity: UInt32 = 128

    /// Removes one of the channels; returns `nil` if there is none.
    @inline(__always)
    func remove() -> UInt32? { Self.removeFirst(from: low) ?? Self.removeFirst(from: high).map { $0 + 64 } }

    @inline(__always)
    func insert(_ channel: UInt32) {
        let bit = UInt64(1) << UInt64(channel % 64)
        if channel < 64 { low.bitwiseOr(bit, ordering: .releasing) } else { high.bitwiseOr(bit, ordering: .releasing) }
    }

    @inline(__always)
    private static func removeFirst(from word: borrowing Atomic<UInt64>) -> UInt32? {
        var bits = word.load(ordering: .relaxed)
        while bits != 0 {
            let others = bits & (bits - 1)
            let (isRemoved, found) = word.compareExchange(expected: bits, desired: others, ordering: .acquiring)
            if isRemoved { return UInt32(bits.trailingZeroBitCount) }
            bits = found
        }
        return nil
    }
}
