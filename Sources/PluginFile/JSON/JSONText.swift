import Foundation
package import PluginABI

extension Value {
    /// Reads a message of another program: the bytes of a line, in which the greatest value can be one part of many.
    package init(jsonMessage bytes: [UInt8]) throws(PluginError) {
        self = try bytes.span.withUnsafeBytes { bytes throws(PluginError) in
            try JSONText.parse(bytes, .message, what: "The message")
        }
    }

    /// Reads a file that people write, in which each name stands once.
    ///
    /// - Parameter what: The file, for messages.
    package init(jsonFile bytes: [UInt8], code: PluginError.Code, what: String) throws(PluginError) {
        self = try bytes.span.withUnsafeBytes { bytes throws(PluginError) in
            try JSONText.parse(bytes, .file, code: code, what: what)
        }
    }
}

/// Reading JSON that comes from outside.
package enum JSONText {
    /// - Parameter what: The text, for messages.
    /// - Throws: `code`, with the position where the text is not valid UTF-8 or JSON, or nested too deeply.
    package static func parse(
        _ text: UnsafeRawBufferPointer, _ rules: JSONReader.Rules = .value, code: PluginError.Code = .invalidValue,
        what: String = "The text"
    ) throws(PluginError) -> Value {
        guard !text.isEmpty else { throw PluginError(code, "\(what) is empty.") }
        do {
            _ = try UTF8Span(validating: text.bindMemory(to: UInt8.self).span)
        } catch {
            throw PluginError(code, "\(what) is not valid UTF-8, at byte \(error.byteOffsets.lowerBound).")
        }
        do throws(MalformedText) {
            return try JSONReader.read(text, rules)
        } catch {
            throw PluginError(code, "\(what) \(error.message)")
        }
    }
}

extension Bytes {
    /// Reads base64 text; nil for anything else.
    package init?(base64 text: String) {
        guard let data = Data(base64Encoded: text) else { return nil }
        self.init(data)
    }
}
