internal import Glibc
internal import PluginABI
internal import PluginFile
internal import PluginHost

/// A running host, reached over its control socket.
final class AttachedHost: HostService {
    private let path: String
    private let descriptor: CInt

    init(path: String) throws(PluginError) {
        self.path = path
        descriptor = UnixSocket.make()
        let error = UnixSocket.connect(descriptor, to: path)
        guard error == 0 else {
            close(descriptor)
            let reason =
                switch error {
                case ENOENT: "there is no such socket. Start a host with 'pluginhost run --socket \(path)'"
                case ECONNREFUSED: "its host is gone. Start it again with 'pluginhost run --socket \(path)'"
                case ENAMETOOLONG: "its path is empty or longer than \(UnixSocket.pathLimit) bytes"
                default: String(cString: strerror(error))
                }
            throw PluginError(.cannotAttach, "Cannot attach to \(path): \(reason).")
        }
        guard UnixSocket.hasTrustedPeer(descriptor) else {
            close(descriptor)
            throw PluginError(.untrusted, "The host that listens on \(path) is another user's.")
        }
    }

    deinit { close(descriptor) }

    func end() {}

    /// One request at a time: the commands have no more. Blocks this thread, which is one of the program's own.
    func request(_ method: String, _ parameters: [String: Value]) async throws(PluginError) -> Value {
        let message: Value = ["jsonrpc": "2.0", "id": 1, "method": .string(method), "params": .map(parameters)]
        let error = UnixSocket.send(message.json + "\n", to: descriptor)
        // What the host said before it closed can still be read.
        guard error == 0 || error == EPIPE else { throw gone }
        let line = try readLine()
        guard let answer = try? Value(jsonMessage: line) else {
            throw PluginError(.cannotAttach, "What listens on \(path) does not answer as a host does.")
        }
        if let result = answer["result"] { return result }
        throw RPCError(answer["error"]).reported
    }

    private func readLine() throws(PluginError) -> [UInt8] {
        var line: [UInt8] = []
        repeat {
            guard readMore(descriptor, into: &line) > 0 else { throw gone }
        } while line.last != UInt8(ascii: "\n")
        return line
    }

    private var gone: PluginError {
        PluginError(.hostStopped, "The host on \(path) closed the connection before it answered.")
    }
}
