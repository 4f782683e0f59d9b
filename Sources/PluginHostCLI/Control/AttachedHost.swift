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

    func list() async throws(PluginError) -> Value { try await request("list", [:]) }

    func generations() async throws(PluginError) -> Value { try await request("list", ["all": true]) }

    func routes() async throws(PluginError) -> Value { try await request("routes", [:]) }

    func services() async throws(PluginError) -> Value { try await request("services", [:]) }

    func statistics() async throws(PluginError) -> Value { try await request("stats", [:]) }

    func call(
        _ target: String, _ action: String, _ parameters: [String: Value], timeout: Duration?
    ) async throws(PluginError) -> Value {
        let fields: [String: Value] = [
            "target": .string(target), "action": .string(action), "parameters": .map(parameters),
        ]
        return try await request("call", fields, timeout: timeout)
    }

    func callService(
        _ name: String, from version: String?, _ action: String, _ parameters: [String: Value], timeout: Duration?
    ) async throws(PluginError) -> Value {
        var fields: [String: Value] = [
            "service": .string(name), "action": .string(action), "parameters": .map(parameters),
        ]
        if let version { fields["version"] = .string(version) }
        return try await request("call", fields, timeout: timeout)
    }

    func callObject(
        _ object: Int, _ action: String, _ parameters: [String: Value], timeout: Duration?
    ) async throws(PluginError) -> Value {
        let fields: [String: Value] = [
            "object": .int(object), "action": .string(action), "parameters": .map(parameters),
        ]
        return try await request("call", fields, timeout: timeout)
    }

    func release(_ object: Int) async throws(PluginError) { _ = try await request("release", ["object": .int(object)]) }

    func open(
        _ url: String, _ parameters: [String: Value], isLocal: Bool, timeout: Duration?
    ) async throws(PluginError) -> Value {
        let fields: [String: Value] = ["url": .string(url), "parameters": .map(parameters), "local": .bool(isLocal)]
        return try await request("open", fields, timeout: timeout)
    }

    func post(
        _ event: String, _ parameters: [String: Value], sticky: Bool, timeout: Duration?
    ) async throws(PluginError) -> Value {
        let fields: [String: Value] = [
            "event": .string(event), "parameters": .map(parameters), "sticky": .bool(sticky),
        ]
        return try await request("post", fields, timeout: timeout)
    }

    func remove(_ name: String, force: Bool, dryRun: Bool) async throws(PluginError) -> Value {
        try await request("remove", ["name": .string(name), "force": .bool(force), "dryRun": .bool(dryRun)])
    }

    func rollback(
        _ name: String, to version: String?, force: Bool, dryRun: Bool
    ) async throws(PluginError) -> Value {
        var fields: [String: Value] = ["name": .string(name), "force": .bool(force), "dryRun": .bool(dryRun)]
        fields["version"] = version.map { .string($0) }
        return try await request("rollback", fields)
    }

    func versions(_ name: String) async throws(PluginError) -> Value {
        try await request("versions", ["name": .string(name)])
    }

    func events(after number: Int?, timeout: Duration?) async throws(PluginError) -> Value {
        try await request("events", number.map { ["after": .int($0)] } ?? [:], timeout: timeout)
    }

    func inspect(_ file: String, timeout: Duration?) async throws(PluginError) -> Value {
        try await request("inspect", ["file": .string(file)], timeout: timeout)
    }

    /// One request at a time: the commands have no more.
    private func request(
        _ method: String, _ fields: [String: Value], timeout: Duration? = nil
    ) async throws(PluginError) -> Value {
        var fields = fields
        if let timeout { fields["timeout"] = .double(timeout / .seconds(1)) }
        let message: Value = ["jsonrpc": "2.0", "id": 1, "method": .string(method), "params": .map(fields)]
        return try await withTaskExecutorPreference(BlockingExecutor.shared) { () async throws(PluginError) in
            try write(message.json + "\n")
            return try result(of: readLine())
        }
    }

    private func result(of line: [UInt8]) throws(PluginError) -> Value {
        guard let answer = try? Value(jsonMessage: line) else {
            throw PluginError(.cannotAttach, "What listens on \(path) does not answer as a host does.")
        }
        if let result = answer["result"] { return result }
        let error = answer["error"]
        let message = error?["message"]?.string ?? "The host gave neither a result nor an error."
        let code = error?["data"]?["code"]?.string ?? "requestRefused"
        throw PluginError(.init(rawValue: code), message, source: error?["data"]?["source"]?.string)
    }

    private func write(_ text: String) throws(PluginError) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            if count > 0 {
                rest.removeFirst(count)
            } else if errno == EPIPE {
                return  // What the host said before it closed can still be read.
            } else if errno != EINTR {
                throw gone
            }
        }
    }

    private func readLine() throws(PluginError) -> [UInt8] {
        var line: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = recv(descriptor, &chunk, chunk.count, 0)
            if count > 0 {
                line += chunk[..<count]
                if line.last == UInt8(ascii: "\n") { return line }
            } else if count == 0 || errno != EINTR {
                throw gone
            }
        }
    }

    private var gone: PluginError {
        PluginError(.hostStopped, "The host on \(path) closed the connection before it answered.")
    }
}
