internal import PluginABI

/// Reading the JSON of a manifest, or of another file that the messages then name as `what`.
enum ManifestJSON {
    /// - Throws: `code`, with the position where the text is no UTF-8 or no JSON, or nested too deeply.
    static func parse(
        _ text: UnsafeRawBufferPointer, code: PluginError.Code = .invalidManifest, what: String = "The manifest"
    ) throws(PluginError) -> Value {
        guard !text.isEmpty else {
            throw PluginError(code, "\(what) is empty.")
        }
        do {
            _ = try UTF8Span(validating: text.bindMemory(to: UInt8.self).span)
        } catch {
            throw PluginError(
                code,
                "\(what) is no UTF-8: byte \(error.byteOffsets.lowerBound) does not belong there.")
        }
        do throws(JSONReader.Failure) {
            return try JSONReader.read(text)
        } catch {
            throw PluginError(code, "\(what) \(error.message)")
        }
    }
}
