/// A text that is known about a module: a string, bytes, or a part of a file in memory, which is copied only when it is
/// used.
struct KnownText: Equatable, Sendable {
    private enum Content {
        case string(String)
        case bytes([UInt8])
        case part(KnownBytes, Range<Int>)
    }

    private let content: Content

    init(_ string: String) { content = .string(string) }

    init(_ bytes: [UInt8]) { content = .bytes(bytes) }

    /// - Parameter range: The position of the text, which must be inside `bytes`.
    init(_ bytes: KnownBytes, _ range: Range<Int>) { content = .part(bytes, range) }

    /// The text. Bytes that are not UTF-8 are replaced.
    var string: String {
        switch content {
        case .string(let string): string
        case .bytes, .part: withBytes { String(decoding: $0, as: UTF8.self) }
        }
    }

    /// Calls a function with the bytes of the text, which are valid during the call.
    func withBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        switch content {
        case .string(let string):
            return try string.utf8Span.span.withUnsafeBytes { bytes throws(Failure) in try body(bytes) }
        case .bytes(let bytes):
            return try bytes.span.withUnsafeBytes { bytes throws(Failure) in try body(bytes) }
        case .part(let bytes, let range):
            // Sound: `bytes` lives during the call, since this text refers to it.
            return try withExtendedLifetime(bytes) { () throws(Failure) in
                try body(UnsafeRawBufferPointer(rebasing: bytes.all[range]))
            }
        }
    }

    static func == (left: KnownText, right: KnownText) -> Bool {
        if case .part(let bytes, let range) = left.content, case .part(let others, let place) = right.content,
            bytes === others, range == place
        {
            return true
        }
        return left.withBytes { left in right.withBytes { right in left.elementsEqual(right) } }
    }
}
