/// The place of a call in a distributed trace, as [W3C Trace Context](https://www.w3.org/TR/trace-context/) defines it.
public struct TraceContext: Sendable, Hashable {
    /// The number of the trace: 16 bytes, not all 0.
    public let traceID: TraceID
    /// The number of the caller's span, which is the parent of a span that is made for the call: 8 bytes, not all 0.
    public let spanID: SpanID
    /// The flags: bit 0 is ``isSampled``.
    public let flags: UInt8
    /// What tracing systems pass on with the trace: entries `key=value`, separated by commas, at most
    /// `PLUGIN_TRACE_STATE_MAX_BYTES` bytes; empty if there is nothing.
    public let tracestate: String

    /// The number of a trace.
    public struct TraceID: Sendable, Hashable, CustomStringConvertible {
        private let (high, low): (UInt64, UInt64)

        /// Makes a number from its two halves; `nil` if both are 0.
        public init?(_ high: UInt64, _ low: UInt64) {
            guard high | low != 0 else { return nil }
            (self.high, self.low) = (high, low)
        }

        /// Makes a random number.
        public static func random() -> TraceID { TraceID(.random(in: 1 ... .max), .random(in: 0 ... .max))! }

        /// The 16 bytes.
        public var bytes: [UInt8] { high.bigEndianBytes + low.bigEndianBytes }
        /// The number as 32 hexadecimal digits.
        public var description: String { high.hexadecimal + low.hexadecimal }
    }

    /// The number of a span.
    public struct SpanID: Sendable, Hashable, CustomStringConvertible {
        private let number: UInt64

        /// Makes a number; `nil` if it is 0.
        public init?(_ number: UInt64) {
            guard number != 0 else { return nil }
            self.number = number
        }

        /// Makes a random number.
        public static func random() -> SpanID { SpanID(.random(in: 1 ... .max))! }

        /// The 8 bytes.
        public var bytes: [UInt8] { number.bigEndianBytes }
        /// The number as 16 hexadecimal digits.
        public var description: String { number.hexadecimal }
    }

    /// Whether the caller may have recorded its part of the trace.
    public var isSampled: Bool { flags & UInt8(PLUGIN_TRACE_SAMPLED) != 0 }

    /// Makes a context.
    ///
    /// - Parameters:
    ///   - traceID: The number of the trace. Default: a random one, for a new trace.
    ///   - spanID: The number of the caller's span. Default: a random one.
    ///   - isSampled: Whether the caller may have recorded its part of the trace.
    ///   - tracestate: Entries for tracing systems. Those at the end that exceed `PLUGIN_TRACE_STATE_MAX_BYTES` bytes
    ///     are left out; all entries are left out if the text is not printable ASCII.
    public init(
        traceID: TraceID = .random(), spanID: SpanID = .random(), isSampled: Bool = false, tracestate: String = ""
    ) {
        self.init(traceID, spanID, isSampled ? UInt8(PLUGIN_TRACE_SAMPLED) : 0, tracestate)
    }

    /// Reads the headers of a request.
    ///
    /// - Parameters:
    ///   - traceparent: The header `traceparent`.
    ///   - tracestate: The header `tracestate`, shortened as in ``init(traceID:spanID:isSampled:tracestate:)``.
    /// - Returns: `nil` if `traceparent` is not valid; the request then begins a trace of its own.
    public init?(traceparent: String, tracestate: String = "") {
        let text = Array(traceparent.utf8.prefix(Self.length + 1))
        guard text.count >= Self.length, [2, 35, 52].allSatisfy({ text[$0] == UInt8(ascii: "-") }),
            let version = UInt8(hexadecimal: text[0..<2]), version != 0xFF,
            text.count == Self.length || (version > 0 && text[Self.length] == UInt8(ascii: "-")),
            let high = UInt64(hexadecimal: text[3..<19]), let low = UInt64(hexadecimal: text[19..<35]),
            let span = UInt64(hexadecimal: text[36..<52]), let flags = UInt8(hexadecimal: text[53..<55]),
            let traceID = TraceID(high, low), let spanID = SpanID(span)
        else { return nil }
        // For a later version, only the flag that this version knows is kept.
        self.init(traceID, spanID, version == 0 ? flags : flags & UInt8(PLUGIN_TRACE_SAMPLED), tracestate)
    }

    private init(_ traceID: TraceID, _ spanID: SpanID, _ flags: UInt8, _ tracestate: String) {
        (self.traceID, self.spanID, self.flags) = (traceID, spanID, flags)
        self.tracestate = Self.bounded(tracestate)
    }

    /// The number of bytes of ``traceparent``.
    private static let length = 55

    /// The context as the header `traceparent`: `00-TRACEID-SPANID-FLAGS`.
    public var traceparent: String { "00-\(traceID)-\(spanID)-\(flags.hexadecimal)" }

    /// Returns the context for calls that are made within another span.
    ///
    /// - Parameter spanID: The number of that span.
    public func within(_ spanID: SpanID) -> TraceContext { TraceContext(traceID, spanID, flags, tracestate) }

    private static func bounded(_ state: String) -> String {
        let most = Int(PLUGIN_TRACE_STATE_MAX_BYTES)
        guard state.utf8.allSatisfy({ (0x20...0x7E).contains($0) || $0 == 0x09 }) else { return "" }
        guard state.utf8.count > most else { return state }
        let beginning = state.utf8.prefix(most + 1)
        guard let end = beginning.lastIndex(of: UInt8(ascii: ",")) else { return "" }
        return String(state[..<end])
    }
}

extension FixedWidthInteger where Self: UnsignedInteger {
    fileprivate var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { Array($0) } }

    /// All digits, in lower case.
    fileprivate var hexadecimal: String {
        let digits = String(self, radix: 16)
        return String(repeating: "0", count: Self.bitWidth / 4 - digits.count) + digits
    }

    /// Reads lower-case digits, at most as many as fit.
    fileprivate init?(hexadecimal digits: ArraySlice<UInt8>) {
        var number: Self = 0
        for digit in digits {
            switch digit {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): number = number << 4 | Self(digit - UInt8(ascii: "0"))
            case UInt8(ascii: "a")...UInt8(ascii: "f"): number = number << 4 | Self(digit - UInt8(ascii: "a") + 10)
            default: return nil
            }
        }
        self = number
    }
}
