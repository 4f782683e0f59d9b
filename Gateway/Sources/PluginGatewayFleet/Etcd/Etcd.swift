import AsyncHTTPClient
import Dispatch
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import PluginABI
import PluginHost
import Synchronization

/// A client of etcd that uses its JSON interface over HTTP (`/v3/…`), for etcd 3.4 or later.
///
/// The size of answers, and the time to wait for them, are limited. All functions may be called from any thread.
public final class Etcd: Sendable {
    /// The maximum size of an answer, in bytes.
    package static let answerLimit = 4 << 20

    private struct State {
        /// The endpoint that is tried first: the one that answered last.
        var endpoint = 0
        var token: String?
    }

    private let configuration: EtcdConfiguration
    private let client: HTTPClient
    private let state = Mutex(State())

    /// - Parameter configuration: How to reach etcd.
    /// - Throws: An ``EtcdError`` for files that cannot be used.
    public init(_ configuration: EtcdConfiguration) throws(EtcdError) {
        precondition(!configuration.endpoints.isEmpty, "An etcd client needs an endpoint.")
        self.configuration = configuration
        var settings = HTTPClient.Configuration()
        settings.redirectConfiguration = .disallow
        settings.timeout.connect = .nanoseconds(Int64(configuration.timeout / .nanoseconds(1)))
        settings.connectionPool.retryConnectionEstablishment = false
        settings.tlsConfiguration = try Self.tls(configuration)
        client = HTTPClient(eventLoopGroup: HTTPClient.defaultEventLoopGroup, configuration: settings)
    }

    // Does nothing if it is already closed.
    deinit { client.shutdown { _ in } }

    /// Closes the connections. The client cannot be used afterwards.
    public func close() async { try? await client.shutdown() }

    private static func tls(_ configuration: EtcdConfiguration) throws(EtcdError) -> TLSConfiguration {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        if let file = configuration.certificateAuthority {
            guard let certificates = try? NIOSSLCertificate.fromPEMFile(file), !certificates.isEmpty else {
                throw EtcdError(.refused, "\(file) cannot be read, or contains no PEM certificate.")
            }
            tls.trustRoots = .certificates(certificates)
        }
        if let file = configuration.certificate, let key = configuration.key {
            guard let certificates = try? NIOSSLCertificate.fromPEMFile(file), !certificates.isEmpty,
                let key = try? NIOSSLPrivateKey(file: key, format: .pem)
            else { throw EtcdError(.refused, "\(file) or \(key) cannot be read, or is not PEM.") }
            (tls.certificateChain, tls.privateKey) = (certificates.map { .certificate($0) }, .privateKey(key))
        }
        return tls
    }

    // MARK: Asking

    /// Sends a request to the endpoints in turn, and returns the first answer.
    ///
    /// - Parameters:
    ///   - path: The path, such as `/v3/kv/range`.
    ///   - body: The request.
    ///   - changes: Whether the request changes something. If so, no other endpoint is tried once one may have received
    ///     it.
    func ask(_ path: String, _ body: Value, changes: Bool) async throws(EtcdError) -> Value {
        do {
            return try await askEndpoints(path, body, changes: changes)
        } catch  where error.code == .unauthenticated && configuration.user != nil {
            state.withLock { $0.token = nil }
            return try await askEndpoints(path, body, changes: changes)
        }
    }

    private func askEndpoints(_ path: String, _ body: Value, changes: Bool) async throws(EtcdError) -> Value {
        let (first, count) = (state.withLock { $0.endpoint }, configuration.endpoints.count)
        var problems: [String] = []
        for number in (0..<count).map({ (first + $0) % count }) {
            let endpoint = configuration.endpoints[number]
            do throws(EtcdError) {
                let answer = try await ask(endpoint, path, body, token: try await token(endpoint))
                state.withLock { $0.endpoint = number }
                return answer
            } catch {
                switch error.code {
                case .unavailable: break
                case .unknown:
                    // The next endpoint may answer.
                    state.withLock { $0.endpoint = (number + 1) % count }
                    if changes { throw error }
                default: throw error
                }
                problems.append(error.description)
            }
        }
        throw EtcdError(.unavailable, problems.joined(separator: " "))
    }

    /// Returns the token of the user, if there is one; such tokens expire.
    private func token(_ endpoint: String) async throws(EtcdError) -> String? {
        guard let user = configuration.user else { return nil }
        if let token = state.withLock({ $0.token }) { return token }
        guard let file = configuration.passwordFile, let text = try? String(contentsOfFile: file, encoding: .utf8),
            let password = text.split(whereSeparator: \.isNewline).first
        else {
            throw EtcdError(
                .unauthenticated,
                "The file \(configuration.passwordFile ?? "") with the password of the etcd user cannot be read or is empty."
            )
        }
        let answer = try await ask(
            endpoint, "/v3/auth/authenticate", ["name": .string(user), "password": .string(String(password))],
            token: nil
        )
        guard let token = answer["token"]?.string, token.utf8.allSatisfy({ (0x21..<0x7F).contains($0) }) else {
            throw EtcdError(.invalidAnswer, "\(endpoint) answered without a token.")
        }
        state.withLock { $0.token = token }
        return token
    }

    private func request(_ endpoint: String, _ path: String, _ body: Value, _ token: String?) -> HTTPClientRequest {
        var request = HTTPClientRequest(url: endpoint + path)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        if let token { request.headers.add(name: "Authorization", value: token) }
        request.body = .bytes(ByteBuffer(string: body.json))
        return request
    }

    private func ask(
        _ endpoint: String, _ path: String, _ body: Value, token: String?
    ) async throws(EtcdError) -> Value {
        let (request, deadline) = (
            request(endpoint, path, body, token),
            NIODeadline.now() + .nanoseconds(Int64(configuration.timeout / .nanoseconds(1)))
        )
        let (status, bytes): (HTTPResponseStatus, ByteBuffer)
        do {
            let response = try await client.execute(request, deadline: deadline)
            (status, bytes) = (response.status, try await response.body.collect(upTo: Self.answerLimit))
        } catch is NIOTooManyBytesError {
            throw EtcdError(.invalidAnswer, "\(endpoint)\(path) answered with more than \(Self.answerLimit) bytes.")
        } catch {
            let isUnsent =
                error is NIOConnectionError || error as? HTTPClientError == .connectTimeout
                || (error as? IOError).map { Self.unconnected.contains($0.errnoCode) } ?? false
            throw EtcdError(isUnsent ? .unavailable : .unknown, "\(endpoint) does not answer: \(error).")
        }
        guard let answer = Self.read(bytes) else {
            throw EtcdError(
                .invalidAnswer, "\(endpoint)\(path) answered \(status.code), with something that is not JSON.")
        }
        guard status != .ok else { return answer }
        throw Self.error(answer, status, endpoint)
    }

    private static func error(_ answer: Value, _ status: HTTPResponseStatus, _ endpoint: String) -> EtcdError {
        let message = (answer["error"]?.string ?? answer["error"]?["message"]?.string ?? "").clean
        let code: EtcdError.Code =
            message.contains("lease not found")
            ? .leaseNotFound
            : message.contains("auth") || message.contains("permission denied")
                || message.contains("user name is empty")
                ? .unauthenticated : status.code >= 500 ? .unknown : .refused
        return EtcdError(code, "\(endpoint) answered \(status.code): \(message).")
    }

    /// The errors of a connection that could not be made.
    private static let unconnected: Set<CInt> = [ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, EHOSTDOWN, EADDRNOTAVAIL]

    static func read(_ bytes: ByteBuffer) -> Value? {
        bytes.withUnsafeReadableBytes { bytes in
            try? Value(strictJSON: bytes)
        }
    }

    // MARK: Watching

    /// Calls a closure when the watch has begun, and after each change of a key that begins with a prefix, until etcd
    /// ends the watch or the task is cancelled. Some changes may be reported together.
    ///
    /// - Parameters:
    ///   - prefix: The beginning of the keys.
    ///   - changed: The closure.
    /// - Throws: An ``EtcdError`` when the watch ends.
    public func watch(_ prefix: String, _ changed: @Sendable () -> Void) async throws(EtcdError) {
        let endpoint = state.withLock { configuration.endpoints[$0.endpoint] }
        let body: Value = [
            "create_request": [
                "key": .string(Self.encode(prefix)), "range_end": .string(Self.encode(Self.end(of: prefix))),
            ]
        ]
        let request = request(endpoint, "/v3/watch", body, try await token(endpoint))
        do {
            let response = try await client.execute(
                request, timeout: .nanoseconds(Int64(configuration.timeout / .nanoseconds(1))))
            guard response.status == .ok else {
                let bytes = try await response.body.collect(upTo: Self.answerLimit)
                throw Self.error(Self.read(bytes) ?? nil, response.status, endpoint)
            }
            var length = 0
            for try await part in response.body {
                length += part.readableBytes
                if part.readableBytesView.last == UInt8(ascii: "\n") {
                    length = 0
                    changed()
                }
                // The content of a change is not needed.
                if length > 64 << 20 { throw EtcdError(.invalidAnswer, "\(endpoint) sent a change over 64 MiB.") }
            }
        } catch let error as EtcdError {
            throw error
        } catch {
            throw EtcdError(.unavailable, "The watch of \(endpoint) ended: \(error).")
        }
        throw EtcdError(.unavailable, "\(endpoint) ended the watch.")
    }
}
