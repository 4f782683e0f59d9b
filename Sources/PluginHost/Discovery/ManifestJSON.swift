internal import CPluginABI
internal import Foundation
internal import PluginABI

/// Reading the JSON of a manifest, or of another file that the messages then name as `what`.
enum ManifestJSON {
    /// - Throws: `code`, with the position where the text is no UTF-8 or no JSON, or nested too deeply.
    static func parse(
        _ text: UnsafeRawBufferPointer, code: PluginError.Code = .invalidManifest, what: String = "The manifest"
    ) throws(PluginError) -> Value {
        guard let start = text.baseAddress, !text.isEmpty else {
            throw PluginError(code, "\(what) is empty.")
        }
        do {
            _ = try UTF8Span(validating: text.bindMemory(to: UInt8.self).span)
        } catch {
            throw PluginError(
                code,
                "\(what) is no UTF-8: byte \(error.byteOffsets.lowerBound) does not belong there.")
        }
        try checkDepth(text, code, what)
        // Sound: the decoder only reads, and is done with the bytes when this function returns.
        let data = Data(bytesNoCopy: UnsafeMutableRawPointer(mutating: start), count: text.count, deallocator: .none)
        do {
            return try JSONDecoder().decode(JSON.self, from: data).value
        } catch {
            throw PluginError(code, "\(what) is no JSON: \(position(in: data) ?? "\(error)")")
        }
    }

    /// What is wrong and where: the other reader of Foundation tells it, the decoder does not.
    private static func position(in data: Data) -> String? {
        do {
            _ = try JSONSerialization.jsonObject(with: data, options: .fragmentsAllowed)
            return nil
        } catch {
            return (error as NSError).userInfo[NSDebugDescriptionErrorKey] as? String
        }
    }

    /// Brackets outside of strings, so that neither the decoder nor anything after it meets a text nested too deeply.
    private static func checkDepth(
        _ text: UnsafeRawBufferPointer, _ code: PluginError.Code, _ what: String
    ) throws(PluginError) {
        var depth = 0
        var isInString = false
        var isEscaped = false
        for (offset, byte) in text.enumerated() {
            if isInString {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInString = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): isInString = true
            case UInt8(ascii: "["), UInt8(ascii: "{"): depth += 1
            case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
            default: break
            }
            guard depth <= PLUGIN_DEPTH_MAX else {
                throw PluginError(
                    code,
                    "\(what) is nested more than \(PLUGIN_DEPTH_MAX) levels deep, at byte \(offset).")
            }
        }
    }

    /// Any JSON value, or any of a property list but dates.
    struct JSON: Decodable {
        let value: Value

        init(from decoder: any Decoder) throws {
            if let keyed = try? decoder.container(keyedBy: Key.self) {
                var entries: [String: Value] = [:]
                for key in keyed.allKeys { entries[key.stringValue] = try keyed.decode(JSON.self, forKey: key).value }
                value = .map(entries)
            } else if var list = try? decoder.unkeyedContainer() {
                var values: [Value] = []
                while !list.isAtEnd { values.append(try list.decode(JSON.self).value) }
                value = .list(values)
            } else {
                value = try Self.scalar(try decoder.singleValueContainer())
            }
        }

        private static func scalar(_ container: any SingleValueDecodingContainer) throws -> Value {
            if let string = try? container.decode(String.self) { return .string(string) }
            if let bool = try? container.decode(Bool.self) { return .bool(bool) }
            if let int = try? container.decode(Int.self) { return .int(int) }
            if container.decodeNil() { return .null }
            if let data = try? container.decode(Data.self) { return .bytes(Bytes(data)) }
            return .double(try container.decode(Double.self))
        }

        private struct Key: CodingKey {
            let stringValue: String
            let intValue: Int? = nil

            init(stringValue: String) { self.stringValue = stringValue }
            init?(intValue: Int) { return nil }
        }
    }
}
