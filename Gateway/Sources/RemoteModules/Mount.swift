import AsyncHTTPClient
import CoreMetrics
import Foundation
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import PluginABI
import Synchronization

/// The state that the modules for the targets of one other host share: its address, the connections to it, their
/// limits, and what is known about it.
final class Mount: Sendable {
    private struct State {
        var clients: Clients?
        var isOver = false
        var calls = 0
        /// The reasons why targets cannot be called, by the names of the targets.
        var absences: [String: String] = [:]
        var sent = 0
        var retried = 0
        var unanswered = 0
    }

    /// The connections.
    struct Clients: Sendable {
        let usual: HTTPClient
        /// For calls that are sent again: each uses a new connection, which a balancer can route to another host.
        let fresh: HTTPClient
        let loops: MultiThreadedEventLoopGroup
    }

    /// The URL of the other host, without a slash at its end.
    let url: String
    let configuration: RemoteConfiguration
    let logger: Logger
    let token: TokenFile?
    let breaker: CircuitBreaker
    /// Identifies this mount in the chains of calls.
    let number = UInt64.random(in: 1 ... .max)
    private let state = Mutex(State())

    /// - Throws: `invalidConfiguration`; see ``RemoteModules/init(of:targets:in:_:logger:)``.
    init(_ url: String, _ configuration: RemoteConfiguration, _ logger: Logger) throws(PluginError) {
        let url = try Self.checked(url)
        (self.url, self.configuration, self.logger) = (url, configuration, logger)
        var token: TokenFile?
        if let file = configuration.tokenFile {
            token = try TokenFile(file)
            if url.hasPrefix("http://") {
                logger.warning(
                    "The token for \(url) is sent without encryption. Use https:// outside of trusted networks.")
            }
        }
        self.token = token
        breaker = CircuitBreaker(configuration.breaker) { state, reason in
            Meter(label: "remote_breaker_open", dimensions: [("mount", url)]).set(state == .closed ? 0 : 1)
            switch state {
            case .open:
                logger.warning("Calls are no longer sent to \(url) for \(configuration.breaker.pause): \(reason)")
            case .halfOpen: logger.info("One call is sent to \(url), to find out whether it answers again.")
            case .closed: logger.notice("Calls are sent to \(url) again.")
            }
        }
    }

    /// Returns a URL without slashes at its end.
    ///
    /// - Throws: `invalidConfiguration` if it is not a URL of a host.
    static func checked(_ url: String) throws(PluginError) -> String {
        func invalid(_ what: String) -> PluginError {
            PluginError(
                .invalidConfiguration,
                "“\(ForeignText.excerpt(url.utf8))” \(what) Write https://HOST, possibly with a port and a path.")
        }
        guard url.utf8.count <= 2048 else { throw invalid("is longer than 2,048 bytes.") }
        guard url.hasPrefix("https://") || url.hasPrefix("http://") else {
            throw invalid("does not begin with https:// or http://.")
        }
        let rest = url[url.range(of: "://")!.upperBound...]
        let authority = rest.prefix { $0 != "/" }
        guard !authority.isEmpty, !authority.hasPrefix(":"), !rest.contains("@"),
            rest.utf8.allSatisfy({ (0x21...0x7E).contains($0) && !"?#\"<>\\^`{|}%".utf8.contains($0) })
        else { throw invalid("is not a URL of a host without a user, a query and a fragment.") }
        guard !rest.split(separator: "/").contains(where: { $0 == "." || $0 == ".." }) else {
            throw invalid("has a path with “.” or “..”.")
        }
        var result = url
        while result.hasSuffix("/") { result.removeLast() }
        guard (try? HTTPClient.Request(url: result + "/modules.json")) != nil else { throw invalid("is not a URL.") }
        return result
    }

    // MARK: Connections

    /// Opens the mount. It has a thread of its own, so that callers that block their threads cannot keep it from
    /// answering.
    func open() {
        let loops = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        var settings = HTTPClient.Configuration(
            tlsConfiguration: configuration.tls, redirectConfiguration: .disallow,
            timeout: .init(connect: configuration.connectTimeout.amount), decompression: .disabled)
        settings.httpVersion = .http1Only
        // Earlier than servers close idle connections.
        settings.connectionPool.idleTimeout = .seconds(10)
        settings.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = max(1, configuration.connectionLimit)
        settings.connectionPool.retryConnectionEstablishment = false
        let usual = HTTPClient(eventLoopGroupProvider: .shared(loops), configuration: settings)
        settings.maximumUsesPerConnection = 1
        let fresh = HTTPClient(eventLoopGroupProvider: .shared(loops), configuration: settings)
        state.withLock { $0.clients = Clients(usual: usual, fresh: fresh, loops: loops) }
    }

    /// Closes all connections. Calls in flight and later calls fail.
    func close() async {
        let clients = state.withLock { state in
            defer { (state.clients, state.isOver) = (nil, true) }
            return state.clients
        }
        guard let clients else { return }
        try? await clients.usual.shutdown()
        try? await clients.fresh.shutdown()
        try? await clients.loops.shutdownGracefully()
    }

    /// The connections; `nil` before the mount is opened, and after it has ended.
    var clients: Clients? { state.withLock(\.clients) }

    // MARK: Targets

    /// Notes why a target cannot be called; `nil` if it can.
    func setAbsence(_ target: String, _ reason: String?) { state.withLock { $0.absences[target] = reason } }

    /// Why a target cannot be called; `nil` if it can.
    func absence(of target: String) -> String? { state.withLock { $0.absences[target] } }

    /// The error for a call of a target that cannot be called; `nil` if it can.
    func unavailability(of target: String) -> PluginError? {
        if state.withLock(\.isOver) {
            return .unavailable("The mount of \(url) has ended, so “\(target)” cannot be called.")
        }
        return absence(of: target).map { .unavailable("“\(target)” of \(url) cannot be called: \($0)") }
    }

    // MARK: Calls

    /// Counts a call in flight, until ``leave()``.
    ///
    /// - Throws: `overloaded`.
    func enter() throws(PluginError) {
        let limit = max(1, configuration.callLimit)
        let isFull = state.withLock { state in
            guard state.calls < limit else { return true }
            state.calls += 1
            return false
        }
        guard isFull else { return }
        throw PluginError(.overloaded, "\(limit) calls to \(url) are in flight, which is the limit. Try again later.")
    }

    func leave() { state.withLock { $0.calls -= 1 } }

    func countSent(isRetry: Bool) {
        state.withLock { state in
            state.sent += 1
            if isRetry { state.retried += 1 }
        }
        if isRetry { Counter(label: "remote_retries_total", dimensions: [("mount", url)]).increment() }
    }

    func countUnanswered() { state.withLock { $0.unanswered += 1 } }

    /// Counts a call that is over.
    func countOver(_ error: PluginError?) {
        let outcome =
            switch error?.code {
            case nil: "ok"
            case .moduleUnavailable?: "unavailable"
            case .deadlineExceeded?: "late"
            default: "error"
            }
        Counter(label: "remote_calls_total", dimensions: [("mount", url), ("outcome", outcome)]).increment()
    }

    var counts: (inFlight: Int, sent: Int, retried: Int, unanswered: Int) {
        state.withLock { ($0.calls, $0.sent, $0.retried, $0.unanswered) }
    }

    // MARK: Requests

    /// The headers that all requests have.
    ///
    /// - Throws: `unauthorized` if the token cannot be read.
    func headers() throws(PluginError) -> HTTPHeaders {
        var headers = HTTPHeaders()
        if let token { headers.add(name: "Authorization", value: "Bearer \(try token.token())") }
        return headers
    }
}

extension PluginError {
    static func unavailable(_ message: String) -> PluginError { PluginError(.moduleUnavailable, message) }
}

extension Duration {
    /// The duration as an amount of time, at most 292 years.
    var amount: TimeAmount {
        let (seconds, attoseconds) = components
        let (product, isTooLong) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        return isTooLong
            ? .nanoseconds(.max)
            : .nanoseconds(product.addingReportingOverflow(attoseconds / 1_000_000_000).partialValue)
    }
}
