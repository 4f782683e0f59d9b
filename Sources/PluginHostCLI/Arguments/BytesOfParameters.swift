internal import Glibc
internal import PluginABI
internal import PluginHost

/// Reads the values of parameters that are declared bytes: `@path` for the content of a file, `base64:text`, or base64
/// text alone. Files are read by the process in which they are entered, never by a host at the other end of a socket.
struct BytesOfParameters {
    /// The number of bytes that all files of a command may have together: in base64 they fit into a line of the control
    /// socket.
    static let limit = 4 << 20

    private var left = limit

    /// - Throws: `unreadable` if the file cannot be read; `usage` if there is no path, the text is not base64, or the files
    ///   are too large.
    mutating func read(_ text: String, of name: String) throws(PluginError) -> Bytes {
        if text.hasPrefix("@") { return try readFile(String(text.dropFirst()), of: name) }
        let digits = text.hasPrefix("base64:") ? String(text.dropFirst("base64:".count)) : text
        guard case .bytes(let bytes)? = Value(text: digits, as: .bytes) else {
            throw .usage(
                "The parameter '\(name.shortened)' is declared bytes, and '\(text.shortened)' is not base64. Write "
                    + "'\(name.shortened)=@FILE' or '\(name.shortened)=base64:TEXT'.")
        }
        return bytes
    }

    private mutating func readFile(_ path: String, of name: String) throws(PluginError) -> Bytes {
        guard !path.isEmpty else {
            throw .usage("The parameter '\(name.shortened)' lacks the path of a file after '@'.")
        }
        try ArgumentParser.checkPath(path, "file", "the parameter '\(name.shortened)'")
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.unreadable(path, name, errno) }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        while true {
            let count = readMore(descriptor, into: &bytes)
            if count < 0 { throw Self.unreadable(path, name, errno) }
            if count == 0 { break }
            guard bytes.count <= left else {
                throw .usage(
                    "The files of all parameters may have at most \(Self.limit) bytes together; with \(path.printable) for "
                        + "'\(name.shortened)' they have more.")
            }
        }
        left -= bytes.count
        return Bytes(bytes)
    }

    private static func unreadable(_ path: String, _ name: String, _ error: CInt) -> PluginError {
        PluginError(
            .unreadable,
            "Cannot read \(path.printable) for the parameter '\(name.shortened)': \(String(cString: strerror(error))).")
    }
}
