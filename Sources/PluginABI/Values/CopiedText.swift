// Copies of text that has crossed the boundary, and the form of short strings.

extension String {
    /// Copies UTF-8; invalid UTF-8 is repaired. Names and short words, which Swift stores in the string itself, are made
    /// in place, in a third of the time.
    @usableFromInline init(copying start: UnsafeRawPointer?, count: Int) {
        if let start, let short = Self.short(start, count) {
            self = short
        } else {
            self = String(decoding: UnsafeRawBufferPointer(start: start, count: count), as: UTF8.self)
        }
    }

    /// Returns a string that consists of its own two words: at most 15 bytes of ASCII, zeros, and 0xE0 plus the
    /// number of bytes of text. Returns `nil` for other text.
    @inline(__always)
    private static func short(_ start: UnsafeRawPointer, _ count: Int) -> String? {
        guard isShortFormKnown, count <= 15 else { return nil }
        func word<Word: FixedWidthInteger>(_ type: Word.Type, at offset: Int, shiftedBy bytes: Int) -> UInt64 {
            UInt64(start.loadUnaligned(fromByteOffset: offset, as: type)) &<< UInt64(truncatingIfNeeded: bytes &* 8)
        }
        var (low, high): (UInt64, UInt64) = (0, 0)
        if count > 8 {
            low = word(UInt64.self, at: 0, shiftedBy: 0)
            high = word(UInt64.self, at: count &- 8, shiftedBy: 0) &>> UInt64(truncatingIfNeeded: 128 &- count &* 8)
        } else if count >= 4 {
            low = word(UInt32.self, at: 0, shiftedBy: 0) | word(UInt32.self, at: count &- 4, shiftedBy: count &- 4)
        } else if count > 0 {
            low = word(UInt8.self, at: 0, shiftedBy: 0) | word(UInt8.self, at: count / 2, shiftedBy: count / 2)
            low |= word(UInt8.self, at: count &- 1, shiftedBy: count &- 1)
        }
        guard (low | high) & 0x8080_8080_8080_8080 == 0 else { return nil }
        // Sound: the form was compared with a literal's, and ASCII needs no other check.
        return unsafeBitCast((low, high | UInt64(truncatingIfNeeded: 0xE0 | count) &<< 56), to: String.self)
    }

    /// The words and the number of bytes of text of a string in this form, or in the same form with other text than
    /// ASCII; `nil` for others.
    @inline(__always)
    fileprivate static func short(at string: UnsafePointer<String>) -> (words: (UInt64, UInt64), count: Int)? {
        guard isShortFormKnown else { return nil }
        // Sound: both consist of two words.
        let words = UnsafeRawPointer(string).load(as: (UInt64, UInt64).self)
        guard words.1 & (0x20 &<< 56) != 0 else { return nil }
        return (words, Int(truncatingIfNeeded: words.1 &>> 56 & 0x0F))
    }

    /// Whether strings have this form: the compiler compares a literal with it, and removes the other branch.
    @inline(__always)
    private static var isShortFormKnown: Bool {
        guard MemoryLayout<String>.size == MemoryLayout<(UInt64, UInt64)>.size else { return false }
        // Sound: both consist of two words.
        return unsafeBitCast("fifteen letters", to: (UInt64, UInt64).self)
            == (0x206E_6565_7466_6966, 0xEF73_7265_7474_656C)
    }
}

extension UnsafePointer<String> {
    /// The words and the number of bytes of text of a string that consists of its own two words; `nil` for others.
    @inline(__always)
    var short: (words: (UInt64, UInt64), count: Int)? { String.short(at: self) }
}
