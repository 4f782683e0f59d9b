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
    ///   - patience: How long to wait for the host to accept the connection, to read more of a request, and to answer a
    ///     request that runs no code of modules.
    ///   - probe: If given, the host must answer a first request within this time.
    ///   - answerLimit: The maximum size of an answer, in bytes.
    /// - Throws: `cannotAttach`; `untrusted` if the host belongs to another user; `deadlineExceeded` if it does not
    ///   answer.
    init(
        path: String, patience: Duration = .seconds(120), probe: Duration? = nil, answerLimit: Int = 256 << 20
    ) throws(PluginError) {
        (self.path, self.patience, self.answerLimit) = (path, patience, answerLimit)
        descriptor = UnixSocket.make()
        UnixSocket.limitWaiting(descriptor, to: probe ?? patience)
        let error = UnixSocket.connect(descriptor, to: path)
        // The queue of a host that hangs fills up.
        if error == EAGAIN { throw silent(for: probe ?? patience) }
        guard error == 0 else {
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
            throw PluginError(
                .untrusted,
                "The host that listens on \(path) belongs to another user. Run the command as that user (sudo -u USER)."
            )
        }
        guard let probe else { return }
        // No action has the empty name: the answer is null.
        _ = try exchange("types", ["target": "", "action": ""], within: probe)
        UnixSocket.limitWaiting(descriptor, to: patience)
    }

    deinit { close(descriptor) }

    func end() {}

    /// Sends a request and waits for the answer. There is one request at a time. Blocks this thread, which belongs to
    /// the program.
    func request(_ method: String, _ parameters: [String: Value]) async throws(PluginError) -> Value {
        let answer = try exchange(method, parameters, within: deadline(method, parameters))
        if let result = answer["result"] { return result }
        throw RPCError(answer["error"]).reported
    }

    /// Returns the whole answer, which may contain an error instead of a result.
    private func exchange(
        _ method: String, _ parameters: [String: Value], within deadline: Duration?
    ) throws(PluginError) -> Value {
        let message: Value = ["jsonrpc": "2.0", "id": 1, "method": .string(method), "params": .map(parameters)]
        let error = UnixSocket.send(message.json + "\n", to: descriptor)
        if error == EAGAIN { throw silent(for: deadline ?? patience) }
        // If the host has closed the connection, its last answer can still be read.
        guard error == 0 || error == EPIPE else { throw gone }
        let line = try readLine(within: deadline)
        guard let answer = try? Value(jsonMessage: line) else {
            throw PluginError(.cannotAttach, "The program that listens on \(path) does not answer like a host.")
        }
        return answer
    }

    /// Returns how long to wait for the answer; `nil` if it may take as long as code of modules does.
    private func deadline(_ method: String, _ parameters: [String: Value]) -> Duration? {
        if let timeout = parameters["timeout"]?.double.flatMap(Duration.init(timeout:)) { return timeout + Self.grace }
        return HostMethod.named[method]?.waitsForModules == true ? nil : patience
    }

    private func readLine(within deadline: Duration?) throws(PluginError) -> [UInt8] {
        let end = deadline.map { ContinuousClock.now + $0 }
        var line: [UInt8] = []
        repeat {
            guard isReadable(until: end) else { throw silent(for: deadline ?? .zero) }
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

    private func silent(for time: Duration) -> PluginError {
        PluginError(.deadlineExceeded, "The host on \(path) has not answered within \(inSeconds(time)).")
    }

    private var gone: PluginError {
        PluginError(.hostStopped, "The host on \(path) closed the connection before it answered.")
    }
}
