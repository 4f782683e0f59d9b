// Writing JSON, so that a module needs no library but this one. Reading it is the host's work, and Foundation's.

extension Value {
    /// The value as one line of JSON (RFC 8259), keys sorted. Bytes are base64, objects `{"object": handle}`; numbers
    /// that JSON does not have (infinities, NaN) are strings.
    public var json: String {
        var text = ""
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

    /// Copies what needs no escape in runs.
    private static func writeJSON(_ string: String, to text: inout String) {
        text += "\""
        let bytes = string.utf8
        var written = bytes.startIndex
        for index in bytes.indices {
            guard let escape = escape(bytes[index]) else { continue }
            text.append(contentsOf: string[written..<index])
            text += escape
            written = bytes.index(after: index)
        }
        text.append(contentsOf: string[written...])
        text += "\""
    }

    private static func escape(_ byte: UInt8) -> String? {
        switch byte {
        case UInt8(ascii: "\""): return "\\\""
        case UInt8(ascii: "\\"): return "\\\\"
        case UInt8(ascii: "\n"): return "\\n"
        case UInt8(ascii: "\r"): return "\\r"
        case UInt8(ascii: "\t"): return "\\t"
        case 0..<0x20, 0x7F:
            let digits = String(byte, radix: 16)
            return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        default: return nil
        }
    }
}

extension Bytes {
    /// The bytes in base64 (RFC 4648), padded.
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
