// Module authors import only PluginABI: it re-exports the types of the C interface.
@_exported public import CPluginABI
import Glibc

extension plugin_string {
    /// A copy of the text. The host passes on only valid UTF-8; in text from elsewhere, invalid UTF-8 is repaired. A
    /// null pointer, or a length of 4 GiB or more, results in an empty string.
    @inlinable public var text: String {
        guard let bytes, count <= UInt32.max else { return "" }
        return String(copying: bytes, count: Int(count))
    }

    /// Borrows text, which must outlive the value.
    @inlinable package init(_ text: UnsafeBufferPointer<UInt8>) {
        let start = UnsafeRawPointer(text.baseAddress)?.assumingMemoryBound(to: CChar.self)
        self.init(bytes: start, count: UInt64(text.count))
    }

    /// Returns a copy that is never freed, followed by a zero byte that is not counted.
    package static func immortal(_ text: String) -> plugin_string {
        text.withPluginString { text in
            let count = Int(text.count)
            let copy = UnsafeMutablePointer<CChar>.allocate(capacity: count + 1)
            if let bytes = text.bytes { copy.initialize(from: bytes, count: count) }
            (copy + count).initialize(to: 0)
            return plugin_string(bytes: copy, count: text.count)
        }
    }

    /// Returns whether the bytes equal those of a literal.
    func equals(_ literal: StaticString) -> Bool {
        count == UInt64(literal.utf8CodeUnitCount) && memcmp(bytes, literal.utf8Start, literal.utf8CodeUnitCount) == 0
    }

    /// Borrows the text of a literal, which lives as long as the process.
    @inlinable public init(_ literal: StaticString) {
        let start = UnsafeRawPointer(literal.utf8Start).assumingMemoryBound(to: CChar.self)
        self.init(bytes: start, count: UInt64(literal.utf8CodeUnitCount))
    }
}

extension UnsafeMutablePointer<plugin_value> {
    /// Copies a value as two words, because it was just written, or is about to be read, in these units. If a value
    /// were read in other units than it was written in, the processor would wait until the words had left its store
    /// buffer.
    @inlinable @inline(__always)
    package func initialize(byWordsOf value: plugin_value) {
        withUnsafeBytes(of: value) { words in
            let pointer = UnsafeMutableRawPointer(self)
            pointer.storeBytes(of: words.load(as: UInt64.self), as: UInt64.self)
            pointer.storeBytes(of: words.load(fromByteOffset: 8, as: UInt64.self), toByteOffset: 8, as: UInt64.self)
        }
    }
}

extension String {
    /// Lends the text to `body` in the form in which it crosses the boundary.
    @inlinable public func withPluginString<Result>(_ body: (plugin_string) throws -> Result) rethrows -> Result {
        // `withUTF8` needs a variable, and a copy costs reference counting. On Linux all strings are UTF-8, so
        // contiguous storage is always available.
        try utf8.withContiguousStorageIfAvailable { try body(plugin_string($0)) }!
    }
}

extension Duration {
    /// The duration in whole nanoseconds, at most `Int64.max`: about 292 years.
    package var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, carry) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
        return overflow || carry ? (seconds < 0 ? .min : .max) : sum
    }
}
