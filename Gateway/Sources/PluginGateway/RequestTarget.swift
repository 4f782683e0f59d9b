import Hummingbird
import PluginABI

/// The target of a request, as it was sent: nothing is decoded or normalised.
struct RequestTarget: Sendable {
    /// The path behind the prefix of the gateway; begins with a slash.
    let path: String
    /// The query with its question mark; empty if there is none.
    let query: String
    /// The name in the `Host` header, in lower case and without the port; empty if there is none.
    let host: String

    /// The maximum length of a path with its query, in bytes.
    static let lengthLimit = 16_384

    init(_ request: ReceivedRequest, prefix: String) throws(Problem) {
        var text = request.path ?? ""
        guard text.utf8.count <= Self.lengthLimit else {
            throw Problem(.uriTooLong, "The path is longer than \(Self.lengthLimit) bytes.")
        }
        let parts: (path: String, query: String)? = text.withUTF8 { bytes in
            guard bytes.first == UInt8(ascii: "/") else { return nil }
            var mark = bytes.count
            for (index, byte) in bytes.enumerated() {
                guard byte > 0x20, byte != 0x7F, byte != 0x23 else { return nil }
                if byte == UInt8(ascii: "?"), mark == bytes.count { mark = index }
            }
            return (String(decoding: bytes[..<mark], as: UTF8.self), String(decoding: bytes[mark...], as: UTF8.self))
        }
        guard let parts else {
            throw Problem(.invalidURL, "The path must begin with “/”, and have no spaces, control characters or “#”.")
        }
        guard prefix.isEmpty || parts.path.hasPrefix(prefix + "/") else {
            throw Problem(.noRoute, "There is nothing at this path.")
        }
        path = prefix.isEmpty ? parts.path : String(parts.path.dropFirst(prefix.count))
        query = parts.query
        host = try Self.host(request.authority ?? "")
    }

    static func host(_ authority: String) throws(Problem) -> String {
        var authority = authority
        let name: String? = authority.withUTF8 { bytes in
            let end =
                bytes.first == UInt8(ascii: "[")
                ? bytes.firstIndex(of: UInt8(ascii: "]")).map { $0 + 1 } ?? bytes.count
                : bytes.firstIndex(of: UInt8(ascii: ":")) ?? bytes.count
            let (name, port) = (bytes[..<end], bytes[end...])
            let isPort =
                port.isEmpty
                || (port.first == UInt8(ascii: ":")
                    && port.dropFirst().allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
            guard isPort, name.count <= 255, name.allSatisfy(isHostByte) else { return nil }
            return String(decoding: name, as: UTF8.self)
        }
        guard let name else {
            throw Problem(.invalidURL, "The header Host is missing, or not a name or address, possibly with a port.")
        }
        let isLower = !name.utf8.contains { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) }
        return isLower ? name : name.lowercased()
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        case UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: ":"), UInt8(ascii: "["),
            UInt8(ascii: "]"):
            true
        default: false
        }
    }
}
