import Glibc
import PluginABI

/// Borrowed text: UTF-8, except that a slash that was written as `%2F` in a path is the byte ``escapedSlash``, which
/// never occurs in UTF-8.
typealias RawText = UnsafeBufferPointer<UInt8>

extension RawText {
    /// The byte for an escaped slash, which belongs to its segment.
    static var escapedSlash: UInt8 { 0xFF }

    init(_ text: plugin_string) {
        let start = UnsafeRawPointer(text.bytes)?.assumingMemoryBound(to: UInt8.self)
        self.init(start: start, count: start == nil ? 0 : Int(text.count))
    }

    /// Returns a part, by offsets from the beginning.
    @inline(__always)
    func part(_ start: Int, _ end: Int) -> RawText { RawText(rebasing: self[start..<end]) }

    @inline(__always)
    static func == (left: RawText, right: RawText) -> Bool {
        left.count == right.count && (left.isEmpty || memcmp(left.baseAddress!, right.baseAddress!, left.count) == 0)
    }

    /// A copy of the text as a string, with `/` for escaped slashes.
    var string: String {
        contains(Self.escapedSlash)
            ? String(decoding: map { $0 == Self.escapedSlash ? 0x2F : $0 }, as: UTF8.self)
            : String(decoding: self, as: UTF8.self)
    }
}

extension String {
    /// Lends the bytes to `body`.
    func withRawText<Result, Failure>(_ body: (RawText) throws(Failure) -> Result) throws(Failure) -> Result {
        var copy = self
        return try copy.withUTF8 { bytes in Swift.Result { () throws(Failure) in try body(bytes) } }.get()
    }
}
