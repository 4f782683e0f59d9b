import PluginABI
import PluginHost

extension Value {
    /// Reads JSON that the other host has sent.
    ///
    /// - Throws: `invalidValue` for bytes that are not valid JSON.
    init(foreign bytes: [UInt8]) throws(PluginError) {
        self = try bytes.span.withUnsafeBytes { bytes throws(PluginError) in try Value(strictJSON: bytes) }
    }
}
