internal import Glibc
internal import PluginABI
internal import PluginFile

/// A running host, reached over its control socket.
final class AttachedHost: HostService {
    /// How long to wait for an answer beyond the timeout that the host was given.
    private static let grace = Duration.seconds(5)

    let path: String
    private let patience: Duration
    private let answerLimit: Int
    private let descriptor: CInt

    /// - Parameters:
    ///   - patience: How long to wait for an answer that does not depend on code of modules.
    ///   - answerLimit: The maximum size of an answer, in bytes.
    init(
        path: String, patience: Duration = .seconds(120), answerLimit: Int = 256 << 20
    ) throws(PluginError) {
        (self.path, self.patience, self.answerLimit) = (path, patience, answerLimit)
        descriptor = UnixSocket.make()
        let error = UnixSocket.connect(descriptor, to: path)
        guard error == 0 else {
            close(descriptor)
            let reason =
                switch error {
                case ENOENT: "there is no such socket. Start a host with 'pluginhost run --socket \(path)'"
                case ECONNREFUSED: "its host has ended. Start it again with 'pluginhost run --socket \(path)'"
                case ENAMETOOLONG: "its path is empty or longer than \(UnixSocket.pathLimit) bytes"
                default: String(cString: strerror(error))
                }
            throw PluginError(.cannotAttach, "Cannot attach to \(path): \(reason).")
        }
        guard UnixSocket.hasTrustedPeer(descriptor) else {
            close(descriptor)
            throw PluginError(.untrusted, "The host that listens on \(path) belongs to another user.")
        }
    }

    deinit { close(descriptor) }

    func end() {}

    /// Sends a request and waits for the answer. There is one request at a time. Blocks this thread, which belongs to
    /// the program.
    func request(_ method: String, _ parameters: [String: Value]) async throws(PluginError) -> Value {
        let message: Value = ["jsonrpc": "2.0", "id": 1, "method": .string(method), "params": .map(parameters)]
        let error = UnixSocket.send(message.json + "\n", to: descriptor)
        // If the host has closed the connection, its last answer can still be read.
        guard error == 0 || error == EPIPE else { throw gone }
        let line = try readLine(within: deadline(method, parameters))
        guard let answer = try? Value(jsonMessage: line) else {
            throw PluginError(.cannotAttach, "The program that listens on \(path) does not answer like a host.")
        }
        if let result = answer["result"] { return result }
        throw RPCError(answer["error"]).reported
    }

    /// Returns how long to wait for the answer; `nil` if it may take as long as code of modules does.
    private func deadline(_ method: String, _ parameters: [String: Value]) -> Duration? {
        if let timeout = parameters["timeout"]?.double.flatMap(Duration.init(timeout:)) { return timeout + Self.grace }
        return HostMethod.named[method]?.waits == true ? nil : patience
    }

    private func readLine(within deadline: Duration?) throws(PluginError) -> [UInt8] {
        let end = deadline.map { ContinuousClock.now + $0 }
        var line: [UInt8] = []
        repeat {
            guard isReadable(until: end) else {
                throw PluginError(
                    .deadlineExceeded, "The host on \(path) has not answered within \(inSeconds(deadline ?? .zero)).")
            }
            guard readMore(descriptor, into: &line) > 0 else { throw gone }
            guard line.count <= answerLimit else {
                throw PluginError(
                    .cannotAttach,
                    "The answer of the host on \(path) is longer than \(answerLimit) bytes.")
            }
        } while line.last != UInt8(ascii: "\n")
        return line
    }

    private func isReadable(until end: ContinuousClock.Instant?) -> Bool {
        guard let end else { return true }
        while true {
            let left = CInt(clamping: max(0, Int((end - .now) / .milliseconds(1))))
            var answer = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let count = poll(&answer, 1, left)
            if count < 0, errno == EINTR { continue }
            return count != 0
        }
    }

    private var gone: PluginError {
        PluginError(.hostStopped, "The host on \(path) closed the connection before it answered.")
    }
}
