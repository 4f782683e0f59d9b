/// A text in sixteen bytes: up to 15 bytes and their number, or the address and length of a longer text.
struct TextKey {
    /// The first eight bytes; for shorter texts a value that identifies their bytes; for long texts the address.
    private let low: UInt64
    /// The other bytes, with the number of bytes in the highest byte; for long texts the length, with `isLong` in the
    /// highest byte.
    private let high: UInt64

    private static var shortestLong: Int { 16 }
    private static var isLong: UInt64 { 0xFF }

    /// Creates a key, which refers to the text itself if that is long.
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
            // The last eight bytes, without those in `low`.
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

    /// The length of a long text; 0 if the text is stored in the key itself.
    var longCount: Int { long?.count ?? 0 }

    /// Returns a key with a copy of the text, which ``free()`` deallocates.
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

    /// Returns the index of the text's page among `count` pages, a power of two. The texts in a map are chosen by the
    /// code that registers them, not by the clients that open URLs, so no client can cause collisions.
    @inline(__always)
    func pageIndex(among count: Int) -> Int {
        let hash: UInt64
        if let long {
            hash = long.hash
        } else {
            // Also folded before the multiplication, which carries bits upwards only.
            let folded = low ^ high &* 0x9E37_79B9_7F4A_7C15
            let mixed = (folded ^ folded &>> 32) &* 0x9FB2_1C65_1E98_DF25
            hash = mixed ^ mixed &>> 32
        }
        return Int(truncatingIfNeeded: hash) & (count &- 1)
    }
}

extension RawText {
    /// The hash of a text with at least eight bytes, computed eight bytes at a time by multiplying and folding. Only
    /// the length and the last 256 bytes are used, so that no URL makes it slow.
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
