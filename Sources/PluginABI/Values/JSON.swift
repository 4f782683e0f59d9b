// Writes JSON, so that a module needs no other library for it. Only the host reads JSON.

extension Value {
    /// The value as one line of JSON (RFC 8259), with sorted keys. Bytes are base64; an object is `{"object": handle}`;
    /// numbers that JSON does not have (infinities, NaN) are strings. Control characters, also those beyond ASCII, and
    /// marks for the text direction are escaped, so that a terminal can show the text.
    public var json: String {
        var text = ""
        // Most lists and maps fit, so that the text need not grow step by step.
        switch self {
        case .list, .map: text.reserveCapacity(128)
        default: break
        }
        writeJSON(to: &text)
        return text
    }

    func writeJSON(to text: inout String) {
        switch self {
        case .null: text += "null"
        case .bool(let value): text += value ? "true" : "false"
        case .int(let value): text += String(value)
        case .double(let value): text += value.isFinite ? String(value) : "\"\(value)\""
        case .string(let value): Self.writeJSON(value, to: &text)
        case .bytes(let value): text += "\"\(value.base64)\""
        case .object(let value): text += "{\"object\":\(value.handle)}"
        case .list(let values):
            text += "["
            for (index, value) in values.enumerated() {
                if index > 0 { text += "," }
                value.writeJSON(to: &text)
            }
            text += "]"
        case .map(let entries):
            text += "{"
            for (index, entry) in entries.sorted(by: { $0.key < $1.key }).enumerated() {
                if index > 0 { text += "," }
                Self.writeJSON(entry.key, to: &text)
                text += ":"
                entry.value.writeJSON(to: &text)
            }
            text += "}"
        }
    }

    /// Writes a string. It is copied as a whole if nothing needs an escape; otherwise, runs of bytes that need none are.
    private static func writeJSON(_ string: String, to text: inout String) {
        text += "\""
        defer { text += "\"" }
        var string = string
        let isPlain = string.withUTF8 { bytes in bytes.indices.allSatisfy { scalarToEscape(bytes, $0) == nil } }
        if isPlain {
            text += string
            return
        }
        string.withUTF8 { bytes in
            var (index, written) = (0, 0)
            while index < bytes.count {
                guard let (scalar, length) = scalarToEscape(bytes, index) else {
                    index += 1
                    continue
                }
                text += String(decoding: bytes[written..<index], as: UTF8.self)
                text += escape(scalar)
                index += length
                written = index
            }
            text += String(decoding: bytes[written...], as: UTF8.self)
        }
    }

    /// Returns the scalar that begins at an index, and its length in bytes, if it must be escaped: JSON does not allow
    /// it, or it must not reach a terminal that shows the JSON (``Swift/Unicode/Scalar/isTerminalControl``).
    private static func scalarToEscape(
        _ bytes: UnsafeBufferPointer<UInt8>, _ index: Int
    ) -> (scalar: UInt32, length: Int)? {
        let first = UInt32(bytes[index])
        switch first {
        case 0x22, 0x5C, 0..<0x20, 0x7F: return (first, 1)
        case 0xC2, 0xD8:  // The first bytes of U+0080 to U+00BF, and of U+061C.
            let scalar = (first & 0x1F) << 6 | UInt32(bytes[index + 1] & 0x3F)
            return Unicode.Scalar(scalar)?.isTerminalControl == true ? (scalar, 2) : nil
        case 0xE2:  // U+2000 to U+2FFF.
            let scalar = 0x2000 | UInt32(bytes[index + 1] & 0x3F) << 6 | UInt32(bytes[index + 2] & 0x3F)
            return Unicode.Scalar(scalar)?.isTerminalControl == true ? (scalar, 3) : nil
        default: return nil
        }
    }

    private static func escape(_ scalar: UInt32) -> String {
        switch scalar {
        case 0x22: return "\\\""
        case 0x5C: return "\\\\"
        case 0x0A: return "\\n"
        case 0x0D: return "\\r"
        case 0x09: return "\\t"
        default:
            let digits = String(scalar, radix: 16)
            return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }
    }
}

extension Bytes {
    /// The bytes in base64 (RFC 4648), with padding.
    public var base64: String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        return String(unsafeUninitializedCapacity: (count + 2) / 3 * 4) { output in
            var written = 0
            for start in stride(from: 0, to: count, by: 3) {
                let present = Swift.min(3, count - start)
                var bits: UInt32 = 0
                for offset in 0..<3 { bits = bits << 8 | (offset < present ? UInt32(self[start + offset]) : 0) }
                for digit in 0..<4 {
                    let sextet = Int(bits >> (18 - 6 * UInt32(digit)) & 63)
                    output[written] = digit <= present ? alphabet[sextet] : UInt8(ascii: "=")
                    written += 1
                }
            }
            return written
        }
    }
}
