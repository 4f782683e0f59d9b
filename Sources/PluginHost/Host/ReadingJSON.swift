public import PluginABI
import PluginFile

extension Value {
    /// Reads JSON text that another program has sent. Reads as ``init(json:)`` does, but the text is bytes, and an object
    /// that has the same name twice is refused, as is a number that would become a different, whole number, such as
    /// `3.00000000000000000001` or one just beyond 64 bits.
    ///
    /// - Parameter bytes: The text. Used only during the call.
    /// - Throws: ``/PluginABI/PluginError/Code/invalidValue`` for bytes that are not valid UTF-8 or not valid JSON, or
    ///   that have the same name twice in an object, nest lists and maps more than 128 deep, or have more than 256
    ///   combining marks in a row; the message says where.
    public init(strictJSON bytes: UnsafeRawBufferPointer) throws(PluginError) {
        self = try JSONText.parse(bytes, .parameters)
    }

    /// Reads JSON text as ``/PluginABI/Value/json`` writes it, with bytes as base64 text. Whole numbers that fit into
    /// 64 bits become ints. If an object has the same name twice, the first entry is used.
    ///
    /// - Throws: ``/PluginABI/PluginError/Code/invalidValue`` for text that is not valid JSON, nests lists and maps more
    ///   than 128 deep, or has more than 256 combining marks in a row; the message says where.
    public init(json text: String) throws(PluginError) {
        self = try text.utf8Span.span.withUnsafeBytes { bytes throws(PluginError) in try JSONText.parse(bytes) }
    }
}
