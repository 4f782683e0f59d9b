// Writes JSON, so that a module needs no other library for it. Only the host reads JSON.

extension Value {
    /// The value as one line of JSON (RFC 8259), with sorted keys. Bytes are base64; an object is `{"object": handle}`;
    /// numbers that JSON does not have (infinities, NaN) are strings. Control characters, also those beyond ASCII, and
    /// marks for the text direction are escaped, so that a terminal can show the text.
    public var json: String {
        var bytes: [UInt8] = []
        // Most lists and maps fit, so that the bytes need not be moved step by step.
        switch self {
        case .list, .map: bytes.reserveCapacity(128)
        default: break
        }
        writeJSON(to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Writes the value as bytes: a string would be checked anew with each piece that is appended.
    private func writeJSON(to bytes: inout [UInt8]) {
        switch self {
        case .null: bytes += "null".utf8
        case .bool(let value): bytes += (value ? "true" : "false").utf8
        case .int(let value): bytes += String(value).utf8
        case .double(let value): bytes += (value.isFinite ? String(value) : "\"\(value)\"").utf8
        case .string(let value): Self.writeJSON(value, to: &bytes)
        case .bytes(let value): bytes += "\"\(value.base64)\"".utf8
        case .object(let value): bytes += "{\"object\":\(value.handle)}".utf8
        case .list(let values):
            bytes.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                value.writeJSON(to: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        case .map(let entries):
            bytes.append(UInt8(ascii: "{"))
            for (index, entry) in entries.sorted(by: { $0.key < $1.key }).enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                Self.writeJSON(entry.key, to: &bytes)
                bytes.append(UInt8(ascii: ":"))
                entry.value.writeJSON(to: &bytes)
            }
            bytes.append(UInt8(ascii: "}"))
        }
    }

    /// Writes a string: its runs of bytes that need no escape as they are.
    private static func writeJSON(_ string: String, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        defer { bytes.append(UInt8(ascii: "\"")) }
        var string = string
        string.withUTF8 { utf8 in
            var (index, written) = (0, 0)
            while index < utf8.count {
                let byte = utf8[index]
                // Most bytes.
                let isPlain = byte >= 0x20 && byte < 0x7F && byte != 0x22 && byte != 0x5C
                guard !isPlain, let (scalar, length) = scalarToEscape(utf8, index) else {
                    index += 1
                    continue
                }
                bytes += utf8[written..<index]
                bytes += escape(scalar).utf8
                index += length
                written = index
            }
            bytes += utf8[written...]
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
