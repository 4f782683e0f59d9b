import ArgumentParser
import Foundation
import Hummingbird
import HummingbirdCore
import HummingbirdTLS
import Logging
import Metrics
import NIOCore
import NIOSSL
import PluginGateway
import PluginHost
import ServiceLifecycle
import UnixSignals

/// `pluginhost-gateway serve`.
struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Serves modules until SIGTERM or SIGINT.",
        discussion: """
            Prints “Listening on ADDRESS:PORT” when it accepts connections; /readyz states whether it accepts calls. Without \
            --tokens, it listens on addresses of this machine only.
            """)

    @Option(help: "A folder with modules. Can be given more than once.")
    var plugins: [String]

    @Option(help: "The address and port to listen on; port 0 chooses a free one.")
    var listen = "127.0.0.1:8080"

    @Option(help: "A file with bearer tokens, one per line, that only its owner can read.")
    var tokens: String?

    @Option(help: "The certificates of the server, in PEM. With --key, the gateway serves HTTPS.")
    var certificate: String?

    @Option(help: "The private key of the server, in PEM.")
    var key: String?

    @Option(help: "Certificates, in PEM. Only clients with a certificate signed by one of them are served.")
    var clientCertificates: String?

    @Option(
        help: "Another name by which clients on this machine may address the gateway. Can be given more than once.")
    var host: [String] = []

    @Option(help: "The maximum size of a request's body, in bytes.")
    var bodyLimit = 1 << 20

    @Option(help: "How many calls may be in flight.")
    var callLimit = 256

    @Option(help: "How many calls of one module may be in flight.")
    var moduleCallLimit = 64

    @Option(help: "How many connections may be open.")
    var connectionLimit = 2000

    @Option(help: "The timeout of a call whose request sets none, in seconds.")
    var timeout = 30.0

    @Option(help: "The longest time that a request may ask for, in seconds.")
    var maximumTimeout = 300.0

    @Option(help: "How long a connection may stay open without a request, in seconds.")
    var idleTimeout = 60.0

    @Option(help: "How long the gateway still accepts calls after /readyz has failed, in seconds.")
    var drainDelay = 0.0

    @Option(help: "How long calls in flight may take to finish when the gateway ends, in seconds.")
    var drainTimeout = 10.0

    @Flag(
        help: "Let everybody who may use the gateway remove, roll back, restart and retry modules by the page at “/”.")
    var allowChanges = false

    @Flag(help: "Serve no page. It shows paths of files and texts of errors to everybody who may use the gateway.")
    var noPage = false

    @Flag(help: "Also load files that other users could have written.")
    var trust = false

    func validate() throws {
        let address = try ListenAddress(listen)
        guard tokens != nil || clientCertificates != nil || address.isLoopback else {
            throw ValidationError(
                "--listen \(listen) can be reached from other machines. Give --tokens FILE, or listen on 127.0.0.1.")
        }
        guard clientCertificates == nil || certificate != nil else {
            throw ValidationError("--client-certificates needs --certificate and --key, because it needs HTTPS.")
        }
        guard !(noPage && allowChanges) else {
            throw ValidationError("--allow-changes is for the page: it and --no-page exclude each other.")
        }
        guard (certificate == nil) == (key == nil) else {
            throw ValidationError("Give both --certificate and --key, or neither.")
        }
        let counts = [bodyLimit, callLimit, moduleCallLimit, connectionLimit]
        guard counts.allSatisfy({ (1...(1 << 30)).contains($0) }), callLimit <= 4096 else {
            throw ValidationError("Limits must be from 1 to 2^30, and --call-limit at most 4096.")
        }
        guard [timeout, maximumTimeout, idleTimeout].allSatisfy({ $0 > 0 && $0 <= 86_400 }),
            [drainDelay, drainTimeout].allSatisfy({ $0 >= 0 && $0 <= 86_400 })
        else {
            throw ValidationError(
                "Times must be more than 0 (--drain-delay and --drain-timeout can be 0) and at most 86400 seconds.")
        }
    }

    func run() async throws {
        for folder in plugins {
            var isFolder: ObjCBool = false
            guard FileManager.default.fileExists(atPath: folder, isDirectory: &isFolder), isFolder.boolValue else {
                throw ValidationError(
                    "--plugins \(folder) is not a folder that exists. Create it, or name another one.")
            }
        }
        let metrics = PrometheusMetrics()
        MetricsSystem.bootstrap(metrics)
        var logger = Logger(label: "pluginhost-gateway", factory: StreamLogHandler.standardError(label:))
        logger.logLevel = .notice
        let gateway = PluginGateway(makeHost(), try gatewayConfiguration(), metrics: metrics)
        let address = try ListenAddress(listen)
        let application = Application(
            responder: gateway.responder, server: try server(gateway),
            configuration: ApplicationConfiguration(
                address: .hostname(address.host, port: address.port), serverName: nil,
                availableConnectionsDelegate: MaximumAvailableConnections(connectionLimit)),
            onServerRunning: { channel in
                if let port = channel.localAddress?.port {
                    print("Listening on \(address.shownHost):\(port)")
                    let scheme = certificate == nil ? "http" : "https"
                    if !noPage { print("Page: \(scheme)://\(address.shownHost):\(port)/") }
                }
                fflush(nil)
            }, logger: logger)
        var group = ServiceGroupConfiguration(
            services: gateway.services(application), gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        // What does not end by itself: clients that do not read.
        group.maximumGracefulShutdownDuration = .seconds(drainDelay + drainTimeout + 20)
        try await ServiceGroup(configuration: group).run()
    }

    private func makeHost() -> PluginHost {
        var configuration = HostConfiguration(folders: plugins)
        configuration.schemes = ["app", "call"]
        configuration.trustsEveryone = trust
        var logger = Logger(label: "modules", factory: StreamLogHandler.standardError(label:))
        logger.logLevel = .info
        configuration.log(to: logger)
        return PluginHost(configuration)
    }

    private func gatewayConfiguration() throws -> GatewayConfiguration {
        var configuration = GatewayConfiguration()
        if clientCertificates != nil { configuration.access = .everyone }
        if let tokens { configuration.access = .tokens(try BearerTokens(file: tokens)) }
        configuration.hosts = Set(host.map { $0.lowercased() })
        (configuration.bodyLimit, configuration.callLimit) = (bodyLimit, callLimit)
        configuration.moduleCallLimit = moduleCallLimit
        configuration.callTimeout = .seconds(timeout)
        configuration.maximumCallTimeout = .seconds(maximumTimeout)
        configuration.page = noPage ? .off : allowChanges ? .changes : .reads
        configuration.drainDelay = .seconds(drainDelay)
        configuration.drainTimeout = .seconds(drainTimeout)
        return configuration
    }

    private func server(_ gateway: PluginGateway) throws -> HTTPServerBuilder {
        let plain = HTTPServerBuilder.http1(
            configuration: .init(
                additionalChannelHandlers: [gateway.connectionHandler],
                idleTimeout: .nanoseconds(Int64(idleTimeout * 1e9)),
                httpDecoderConfiguration: .init(
                    maxHeaderFieldSize: 32 << 10, maxHeaderListSize: 64 << 10, maxHeaderFieldCount: 100)))
        guard let certificate, let key else { return plain }
        let chain = try certificates("--certificate", certificate)
        guard let privateKey = try? NIOSSLPrivateKey(file: key, format: .pem) else {
            throw ValidationError("--key \(key) cannot be read, or is not a private key in PEM without a passphrase.")
        }
        var tls = TLSConfiguration.makeServerConfiguration(
            certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(privateKey))
        tls.minimumTLSVersion = .tlsv12
        if let clientCertificates {
            tls.trustRoots = .certificates(try certificates("--client-certificates", clientCertificates))
            tls.certificateVerification = .noHostnameVerification
        }
        guard (try? NIOSSLContext(configuration: tls)) != nil else {
            throw ValidationError(
                "--key \(key) is not the key of the first certificate in --certificate \(certificate), or cannot be used."
            )
        }
        return try .tls(plain, tlsConfiguration: tls)
    }

    private func certificates(_ option: String, _ file: String) throws -> [NIOSSLCertificate] {
        guard let certificates = try? NIOSSLCertificate.fromPEMFile(file), !certificates.isEmpty else {
            throw ValidationError("\(option) \(file) cannot be read, or has no certificate in PEM.")
        }
        return certificates
    }
}

/// The text of `--listen`: `127.0.0.1:8080`, `[::1]:8080`.
struct ListenAddress {
    let host: String
    let port: Int

    init(_ text: String) throws {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]),
            colon > text.startIndex
        else { throw ValidationError("--listen \(text) is not an address with a port, such as 127.0.0.1:8080.") }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        (self.host, self.port) = (String(host), Int(port))
    }

    var shownHost: String { host.contains(":") ? "[\(host)]" : host }

    /// Whether only this machine can reach it. A name other than `localhost` can lead anywhere.
    var isLoopback: Bool {
        if host == "localhost" { return true }
        guard let address = try? SocketAddress(ipAddress: host, port: 0).ipAddress else { return false }
        return address == "::1" || address.hasPrefix("127.")
    }
}
