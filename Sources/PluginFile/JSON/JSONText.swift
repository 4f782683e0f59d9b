package import PluginABI

extension Value {
    /// Reads a message from another program, given the bytes of a line. The message can contain values of the maximum
    /// depth.
    package init(jsonMessage bytes: [UInt8]) throws(PluginError) {
        self = try bytes.span.withUnsafeBytes { bytes throws(PluginError) in
            try JSONText.parse(bytes, .message, what: "The message")
        }
    }

    /// Reads a file that people write. Duplicate names are refused.
    ///
    /// - Parameter what: The name of the file in messages.
    package init(jsonFile bytes: [UInt8], code: PluginError.Code, what: String) throws(PluginError) {
        self = try bytes.span.withUnsafeBytes { bytes throws(PluginError) in
            try JSONText.parse(bytes, .file, code: code, what: what)
        }
    }
}

/// Reads JSON that the host has not written itself: manifests, files, and messages from other programs.
package enum JSONText {
    /// Reads a text.
    ///
    /// - Parameter what: The name of the text in messages.
    /// - Throws: `code`, with the position where the text is not valid UTF-8 or JSON, or is nested too deeply: line and
    ///   column of a file and of a text of several lines, otherwise the byte.
    package static func parse(
        _ text: UnsafeRawBufferPointer, _ rules: JSONReader.Rules = .value, code: PluginError.Code = .invalidValue,
        what: String = "The text"
    ) throws(PluginError) -> Value {
        guard !text.isEmpty else { throw PluginError(code, "\(what) is empty.") }
        var namesLines: Bool { rules.isFile || text.contains(UInt8(ascii: "\n")) }
        do {
            _ = try UTF8Span(validating: text.bindMemory(to: UInt8.self).span)
        } catch {
            let start = error.byteOffsets.lowerBound
            let position = namesLines ? MalformedText.lineAndColumn(start, in: text) : "byte \(start)"
            throw PluginError(code, "\(what) is not valid UTF-8, at \(position).")
        }
        do throws(MalformedText) {
            return try JSONReader.read(text, rules)
        } catch {
            throw PluginError(code, "\(what) \(namesLines ? error.message(in: text) : error.message)")
        }
    }

    private static func hasLines(_ text: UnsafeRawBufferPointer) -> Bool { text.contains(UInt8(ascii: "\n")) }
}
