import PluginABI

/// A version of a module, identified by the content of its file.
public struct ModuleRelease: Sendable, Hashable {
    /// The version that the file declares.
    public var version: String
    /// The SHA-256 of the file: 64 lower-case hexadecimal digits.
    public var digest: String
    /// The name of the file in the store; `nil` if it is not known to be there.
    public var file: String?

    /// - Parameters:
    ///   - version: The version.
    ///   - digest: The SHA-256 of the file.
    ///   - file: The name of the file in the store.
    public init(version: String, digest: String, file: String?) {
        (self.version, self.digest, self.file) = (version, digest, file)
    }

    /// Whether a text can be the name of a module.
    static func isModule(_ text: String) -> Bool {
        guard (1...256).contains(text.utf8.count), let first = text.first, first.isLetter || first == "_" else {
            return false
        }
        return text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "_.-".contains($0)) }
    }

    static func isVersion(_ text: String) -> Bool {
        (1...128).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21..<0x7F).contains($0) }
    }

    static func isDigest(_ text: String) -> Bool {
        text.utf8.count == 64
            && text.utf8.allSatisfy {
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
                    || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
            }
    }

    /// Whether a text can be the name of a file in the store: no path, not hidden, and without characters that a
    /// terminal interprets.
    static func isFile(_ text: String) -> Bool {
        (1...255).contains(text.utf8.count) && !text.hasPrefix(".")
            && text.utf8.allSatisfy {
                (0x21..<0x7F).contains($0) && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "\\")
            }
    }

    var json: Value {
        var entries: [String: Value] = ["version": .string(version), "digest": .string(digest)]
        if let file { entries["file"] = .string(file) }
        return .map(entries)
    }

    init(_ value: Value) throws(RecordError) {
        guard let version = value["version"]?.string, Self.isVersion(version) else {
            throw RecordError("“version” is not a version")
        }
        guard let digest = value["digest"]?.string, Self.isDigest(digest) else {
            throw RecordError("“digest” is not a SHA-256 of 64 hexadecimal digits")
        }
        if let file = value["file"], file != nil {
            guard let name = file.string, Self.isFile(name) else {
                throw RecordError("“file” is not the name of a file in the store")
            }
        }
        self.init(version: version, digest: digest, file: value["file"]?.string)
    }
}

/// Why a record in etcd cannot be used.
struct RecordError: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

extension Value {
    /// A number that is neither negative, nor infinite, nor larger than a day in milliseconds.
    var fleetNumber: Double? {
        let number = double ?? int.map(Double.init)
        return number.flatMap { (0...86_400_000).contains($0) ? $0 : nil }
    }
}
