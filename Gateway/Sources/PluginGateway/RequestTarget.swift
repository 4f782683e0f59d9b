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

    init(_ request: Request, prefix: String) throws(Problem) {
        var text = request.head.path ?? ""
        guard text.utf8.count <= Self.lengthLimit else {
            throw Problem(.uriTooLong, "The path is longer than \(Self.lengthLimit) bytes.")
        }
        let isSound = text.withUTF8 { bytes in
            bytes.first == UInt8(ascii: "/") && bytes.allSatisfy { $0 > 0x20 && $0 != 0x7F && $0 != 0x23 }
        }
        guard isSound else {
            throw Problem(.invalidURL, "The path must begin with “/”, and have no spaces, control characters or “#”.")
        }
        let mark = text.utf8.firstIndex(of: UInt8(ascii: "?")) ?? text.endIndex
        let path = text[..<mark]
        guard prefix.isEmpty || path.hasPrefix(prefix + "/") else {
            throw Problem(.noRoute, "There is nothing at this path.")
        }
        self.path = prefix.isEmpty ? String(path) : String(path.dropFirst(prefix.count))
        query = String(text[mark...])
        host = try Self.host(request.head.authority ?? "")
    }

    static func host(_ authority: String) throws(Problem) -> String {
        let bytes = authority.utf8
        let end =
            bytes.first == UInt8(ascii: "[")
            ? bytes.firstIndex(of: UInt8(ascii: "]")).map(bytes.index(after:)) ?? bytes.endIndex
            : bytes.firstIndex(of: UInt8(ascii: ":")) ?? bytes.endIndex
        let (name, port) = (authority[..<end], authority[end...].utf8)
        let isPort =
            port.isEmpty
            || (port.first == UInt8(ascii: ":")
                && port.dropFirst().allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        guard isPort, name.utf8.count <= 255, name.utf8.allSatisfy(isHostByte) else {
            throw Problem(.invalidURL, "The header Host is not a name or address, possibly with a port.")
        }
        let isLower = !name.utf8.contains { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) }
        return isLower ? String(name) : name.lowercased()
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
