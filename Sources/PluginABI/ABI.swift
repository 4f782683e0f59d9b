// Module authors import PluginABI alone; the types of the C border come with it.
@_exported public import CPluginABI
import Glibc

extension plugin_string {
    /// The text, copied. The host has checked what it passes on; anything else that is no UTF-8 is repaired, and what
    /// cannot be there (a null pointer, more than 4 GiB) is empty.
    @inlinable public var text: String {
        guard let bytes, count <= UInt32.max else { return "" }
        return String(decoding: UnsafeRawBufferPointer(start: bytes, count: Int(count)), as: UTF8.self)
    }

    /// Lent text.
    @inlinable package init(_ text: UnsafeBufferPointer<UInt8>) {
        let start = UnsafeRawPointer(text.baseAddress)?.assumingMemoryBound(to: CChar.self)
        self.init(bytes: start, count: UInt64(text.count))
    }

    /// A copy that is never freed, with a zero behind it that is not counted.
    package static func immortal(_ text: String) -> plugin_string {
        text.withPluginString { text in
            let count = Int(text.count)
            let copy = UnsafeMutablePointer<CChar>.allocate(capacity: count + 1)
            if let bytes = text.bytes { copy.initialize(from: bytes, count: count) }
            (copy + count).initialize(to: 0)
            return plugin_string(bytes: copy, count: text.count)
        }
    }

    /// Whether these are the bytes of a literal.
    func equals(_ literal: StaticString) -> Bool {
        count == UInt64(literal.utf8CodeUnitCount) && memcmp(bytes, literal.utf8Start, literal.utf8CodeUnitCount) == 0
    }

    /// The text of a literal, which lives as long as the process.
    @inlinable public init(_ literal: StaticString) {
        let start = UnsafeRawPointer(literal.utf8Start).assumingMemoryBound(to: CChar.self)
        self.init(bytes: start, count: UInt64(literal.utf8CodeUnitCount))
    }
}

extension UnsafeMutablePointer<plugin_value> {
    /// Copies a value as two words, which is how it was written a moment ago, or will be read in a moment. A processor that
    /// is asked for other pieces than those waits until they have left its store buffer.
    @inlinable @inline(__always)
    package func initialize(byWordsOf value: plugin_value) {
        withUnsafeBytes(of: value) { words in
            let place = UnsafeMutableRawPointer(self)
            place.storeBytes(of: words.load(as: UInt64.self), as: UInt64.self)
            place.storeBytes(of: words.load(fromByteOffset: 8, as: UInt64.self), toByteOffset: 8, as: UInt64.self)
        }
    }
}

extension String {
    /// Lends the text in the form in which it crosses the border, for as long as `body` runs.
    @inlinable public func withPluginString<Result>(_ body: (plugin_string) throws -> Result) rethrows -> Result {
        // `withUTF8` is for variables, and a copy is counted. On Linux all strings are UTF-8, so this is always available.
        try utf8.withContiguousStorageIfAvailable { try body(plugin_string($0)) }!
    }
}

extension Duration {
    /// Whole nanoseconds, at most `Int64.max`: about 292 years.
    package var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, carry) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
        return overflow || carry ? (seconds < 0 ? .min : .max) : sum
    }
}
