import Foundation
import PluginABI

extension Bytes {
    /// Reads base64 (RFC 4648) with padding; `nil` for other text.
    init?(base64 text: String) {
        guard let data = Data(base64Encoded: text) else { return nil }
        self.init(data)
        // Foundation ignores surplus padding, and bits that do not belong to a byte.
        guard base64 == text else { return nil }
    }
}
