import ArgumentParser
import Foundation
import Hummingbird
import HummingbirdCore
import Logging
import Metrics
import NIOCore
import PluginGateway
import PluginGatewayFleet
import PluginHost
import ServiceLifecycle
import UnixSignals

/// `pluginhost-gateway serve`.
struct Serve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Serves modules until SIGTERM, SIGINT or SIGHUP.",
        discussion: """
            Prints “Listening on ADDRESS:PORT” when it accepts connections; /readyz states whether it accepts calls. Without \
            --tokens, it listens on addresses of this machine only.
            """)

    @Option(help: "A configuration file in JSON. Options take precedence over its settings.")
    var config: String?

    @Option(help: "A folder with modules. Can be given more than once.")
    var plugins: [String] = []

    @Option(help: "The address and port to listen on; port 0 chooses a free one. (default: 127.0.0.1:8080)")
    var listen: String?

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

    @Option(help: "The maximum size of a request's body, in bytes. (default: 1048576)")
    var bodyLimit: Int?

    @Option(help: "How many calls may be in flight. (default: 256)")
    var callLimit: Int?

    @Option(help: "How many calls of one module may be in flight. (default: 64)")
    var moduleCallLimit: Int?

    @Option(help: "How many connections may be open. (default: 2000)")
    var connectionLimit: Int?

    @Option(help: "The timeout of a call whose request sets none, in seconds. (default: 30)")
    var timeout: Double?

    @Option(help: "The longest time that a request may ask for, in seconds. (default: 300)")
    var maximumTimeout: Double?

    @Option(help: "How long a connection may stay open without a request, in seconds. (default: 60)")
    var idleTimeout: Double?

    @Option(help: "How long the gateway still accepts calls after /readyz has failed, in seconds. (default: 0)")
    var drainDelay: Double?

    @Option(help: "How long calls in flight may take to finish when the gateway ends, in seconds. (default: 10)")
    var drainTimeout: Double?

    @Flag(
        help: "Let everybody who may use the gateway remove, roll back, restart and retry modules on the page at “/”.")
    var allowChanges = false

    @Flag(help: "Serve no page. The page shows file paths and error texts to everybody who may use the gateway.")
    var noPage = false

    @Flag(help: "Also load files that other users could have written.")
    var trust = false

    func validate() throws {
        guard !(noPage && allowChanges) else {
            throw ValidationError("--allow-changes is for the page: it and --no-page exclude each other.")
        }
        let counts = [bodyLimit, callLimit, moduleCallLimit, connectionLimit].compactMap(\.self)
        guard counts.allSatisfy(ServeSettings.counts.contains), callLimit.map(ServeSettings.calls.contains) ?? true
        else {
            throw ValidationError("Limits must be from 1 to 2^30, and --call-limit at most 4096.")
        }
        guard [timeout, maximumTimeout, idleTimeout].allSatisfy({ $0.map(ServeSettings.times.contains) ?? true }),
            [drainDelay, drainTimeout].allSatisfy({ $0.map(ServeSettings.drainTimes.contains) ?? true })
        else {
            throw ValidationError(
                "Times must be 0.001 (--drain-delay and --drain-timeout: 0) to 86400 seconds.")
        }
        if let name = host.first(where: { !ListenAddress.isHost($0) }) {
            throw ValidationError("--host \(name) is not a name or an address without a port, such as shop.example.")
        }
    }

    /// Returns the settings of the file, overridden by the options.
    func settings() throws -> ServeSettings {
        var settings = try config.map(ServeSettings.init(file:)) ?? ServeSettings()
        func set<Setting>(_ setting: inout Setting, _ option: Setting?) { if let option { setting = option } }
        if !plugins.isEmpty { settings.host.folders = plugins }
        set(&settings.listen, listen)
        settings.tokens = tokens ?? settings.tokens
        // A pair: a key without its certificate is of no use.
        if certificate != nil || key != nil { (settings.certificate, settings.key) = (certificate, key) }
        settings.clientCertificates = clientCertificates ?? settings.clientCertificates
        if !host.isEmpty { settings.gateway.hosts = Set(host.map { $0.lowercased() }) }
        set(&settings.gateway.bodyLimit, bodyLimit)
        set(&settings.gateway.callLimit, callLimit)
        set(&settings.gateway.moduleCallLimit, moduleCallLimit)
        set(&settings.connectionLimit, connectionLimit)
        set(&settings.gateway.callTimeout, timeout.map { .seconds($0) })
        set(&settings.gateway.maximumCallTimeout, maximumTimeout.map { .seconds($0) })
        set(&settings.idleTimeout, idleTimeout)
        set(&settings.gateway.drainDelay, drainDelay.map { .seconds($0) })
        set(&settings.gateway.drainTimeout, drainTimeout.map { .seconds($0) })
        if noPage || allowChanges { settings.gateway.page = noPage ? .off : .changes }
        if trust { settings.host.trustsEveryone = true }
        try settings.check()
        return settings
    }

    func run() async throws {
        var settings = try settings()
        let metrics = PrometheusMetrics()
        MetricsSystem.bootstrap(metrics)
        var logger = Logger(label: "pluginhost-gateway", factory: StreamLogHandler.standardError(label:))
        logger.logLevel = .notice
        var modules = Logger(label: "modules", factory: StreamLogHandler.standardError(label:))
        modules.logLevel = .info
        settings.host.log(to: modules)
        if settings.clientCertificates != nil { settings.gateway.access = .certificates }
        if let tokens = try settings.readTokens() { settings.gateway.access = .tokens(tokens) }
        let gateway = PluginGateway(PluginHost(settings.host), settings.gateway, metrics: metrics, logger: logger)
        let address = try ListenAddress(settings.listen)
        let prefix = settings.gateway.prefix
        let page = settings.gateway.page == .off ? nil : settings.certificate == nil ? "http://" : "https://"
        let remote = try settings.remote.map { try $0.mount(in: gateway.host, logger) }
        let application = Application(
            responder: gateway.responder, server: try settings.server(gateway),
            configuration: ApplicationConfiguration(
                address: .hostname(address.host, port: address.port), serverName: nil,
                availableConnectionsDelegate: MaximumAvailableConnections(settings.connectionLimit)),
            onServerRunning: { channel in
                if let port = channel.localAddress?.port {
                    print("Listening on \(address.shownHost):\(port)")
                    if let page { print("Page: \(page)\(address.shownHost):\(port)\(prefix)/") }
                }
                fflush(nil)
            }, logger: logger)
        var services: [any Service] = remote + gateway.services(application)
        if let fleet = settings.fleet {
            var logger = Logger(label: "fleet", factory: StreamLogHandler.standardError(label:))
            logger.logLevel = .notice
            do throws(EtcdError) {
                services.append(try FleetMember(gateway, fleet, logger: logger))
            } catch {
                throw ValidationError("“fleet”: \(error)")
            }
        }
        var group = ServiceGroupConfiguration(services: services, logger: logger)
        // Limits the wait for what does not end by itself: clients that do not read.
        group.maximumGracefulShutdownDuration =
            settings.gateway.drainDelay + settings.gateway.drainTimeout + .seconds(20)
        do {
            try await run(ServiceGroup(configuration: group), logger)
        } catch let error as IOError {
            throw ListenError(address: settings.listen, reason: String(cString: strerror(error.errnoCode)))
        } catch let error as SocketAddressError {
            throw ListenError(address: settings.listen, reason: "\(error)")
        }
    }

    /// Runs services until a signal. A second one ends the program immediately, even if something hangs.
    private func run(_ group: ServiceGroup, _ logger: Logger) async throws {
        // `nohup` ignores SIGHUP, which then stays ignored.
        var action = sigaction()
        sigaction(SIGHUP, nil, &action)
        let isIgnored =
            unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
        let signals = await UnixSignalsSequence(trapping: [.sigterm, .sigint] + (isIgnored ? [] : [.sighup]))
        let watching = Task {
            var isEnding = false
            for await signal in signals {
                if isEnding {
                    logger.error("A second signal ends the gateway immediately. Modules are not torn down.")
                    _exit(128 + signal.rawValue)
                }
                isEnding = true
                await group.triggerGracefulShutdown()
            }
        }
        defer { watching.cancel() }
        try await group.run()
    }
}
