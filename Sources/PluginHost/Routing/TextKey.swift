/// A text in sixteen bytes: up to 15 of its bytes and their number, or where it stands and how long it is.
struct TextKey {
    /// The first eight bytes, or what tells fewer apart, or the address.
    private let low: UInt64
    /// The others, or the length; above them the number of bytes, or `isLong`.
    private let high: UInt64

    private static var shortestLong: Int { 16 }
    private static var isLong: UInt64 { 0xFF }

    /// Borrows from a text that is long.
    @inline(__always)
    init(_ text: RawText) {
        let count = text.count
        guard count > 0, let start = UnsafeRawPointer(text.baseAddress) else {
            (low, high) = (0, 0)
            return
        }
        if count >= Self.shortestLong {
            (low, high) = (UInt64(UInt(bitPattern: start)), UInt64(count) | Self.isLong &<< 56)
        } else if count >= 8 {
            low = start.loadUnaligned(as: UInt64.self)
            // The last eight, without those that `low` has.
            let last = start.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self)
            high = UInt64(count) &<< 56 | (count == 8 ? 0 : last &>> UInt64((16 &- count) &* 8))
        } else {
            low = start.tail(from: 0, to: count)
            high = UInt64(count) &<< 56
        }
    }

    private var long: RawText? {
        guard high &>> 56 == Self.isLong else { return nil }
        let start = UnsafeRawPointer(bitPattern: UInt(low))?.assumingMemoryBound(to: UInt8.self)
        return RawText(start: start, count: Int(high & (1 &<< 56 &- 1)))
    }

    /// How many bytes a text has that does not stand in the key itself; else 0.
    var longCount: Int { long?.count ?? 0 }

    /// The same text, which `free` gives back.
    func copy() -> TextKey {
        guard let long else { return self }
        let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: long.count)
        _ = copy.initialize(from: long)
        return TextKey(RawText(copy))
    }

    func free() { long?.deallocate() }

    @inline(__always)
    static func == (left: TextKey, right: TextKey) -> Bool {
        guard left.high == right.high else { return false }
        return left.low == right.low || left.high &>> 56 == isLong && left.hasSameLongText(as: right)
    }

    @inline(never)
    private func hasSameLongText(as other: TextKey) -> Bool {
        guard let long, let other = other.long else { return false }
        return long == other
    }

    /// The page of the text, of a power of two of them. What is in a map is chosen by who registers it, not by who opens
    /// URLs, so nobody else can make texts collide.
    @inline(__always)
    func place(among count: Int) -> Int {
        let hash: UInt64
        if let long {
            hash = long.hash
        } else {
            // Folded before the multiplication, too: that carries bits upwards only.
            let folded = low ^ high &* 0x9E37_79B9_7F4A_7C15
            let mixed = (folded ^ folded &>> 32) &* 0x9FB2_1C65_1E98_DF25
            hash = mixed ^ mixed &>> 32
        }
        return Int(truncatingIfNeeded: hash) & (count &- 1)
    }
}

extension RawText {
    /// Of a text with eight bytes at least: eight at a time, multiplied and folded. Of a longer one only its length and its
    /// last 256 bytes count, so that no URL makes it slow.
    fileprivate var hash: UInt64 {
        let start = UnsafeRawPointer(baseAddress!)
        var hash = UInt64(count)
        for offset in stride(from: count > 256 ? count - 256 : 0, to: count - 7, by: 8) {
            hash = (hash ^ start.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) &* 0x9FB2_1C65_1E98_DF25
            hash ^= hash >> 29
        }
        hash ^= start.loadUnaligned(fromByteOffset: count - 8, as: UInt64.self)
        hash = (hash ^ hash >> 32) &* 0x9FB2_1C65_1E98_DF25
        return hash ^ hash >> 32
    }
}
