import Foundation
public import PluginABI

extension Value {
    /// Reads JSON text: what ``/PluginABI/Value/json`` writes, with bytes as base64 text.
    ///
    /// - Throws: ``/PluginABI/PluginError/Code/invalidValue`` for text that is no JSON.
    public init(json text: String) throws(PluginError) {
        do {
            self = try JSONDecoder().decode(Value.self, from: Data(text.utf8))
        } catch {
            throw PluginError(.invalidValue, "The text is no JSON: \(text.shortened)")
        }
    }
}

extension Bytes {
    /// Reads base64 text; nil for anything else.
    init?(base64 text: String) {
        guard let data = Data(base64Encoded: text) else { return nil }
        self.init(data)
    }
}
