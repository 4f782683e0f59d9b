import ArgumentParser
import Foundation
import PluginABI
import PluginGateway
import PluginGatewayFleet
import PluginHost

/// The settings of `serve`, from its configuration file and its options.
struct ServeSettings {
    var listen = "127.0.0.1:8080"
    /// The paths of the files for tokens and TLS.
    var tokens: String?
    var certificate: String?
    var key: String?
    var clientCertificates: String?
    var connectionLimit = 2000
    /// The targets of other hosts.
    var remote: [RemoteSettings] = []
    /// How long a connection may stay open without a request, in seconds.
    var idleTimeout = 60.0
    /// ``GatewayConfiguration/access`` is set when the files are read.
    var gateway = GatewayConfiguration()
    /// How the host takes part in a fleet; `nil` if it does not.
    var fleet: FleetConfiguration?
    var host: HostConfiguration = {
        var host = HostConfiguration(folders: [])
        host.schemes = ["app", "call"]
        return host
    }()

    /// The range for the number of calls in flight. Each can take a thread.
    static let calls = 1...4096
    static let counts = 1...(1 << 30)
    /// The ranges for times, in seconds: from a millisecond to a day.
    static let times = 0.001...86_400
    static let drainTimes = 0.0...86_400
    /// The allowed interval between heartbeats, in seconds. The page considers a stream lost after 60 seconds without
    /// one.
    static let heartbeats = 0.1...30

    init() {}

    /// Reads the file of tokens; returns `nil` if there is none.
    func readTokens() throws -> BearerTokens? {
        guard let tokens else { return nil }
        do throws(PluginError) { return try BearerTokens(file: tokens) } catch { throw ValidationError(error.message) }
    }

    // MARK: The file

    static let sizeLimit = 16 << 20

    /// Reads a configuration file.
    init(file path: String) throws {
        guard let handle = FileHandle(forReadingAtPath: path),
            let data = try? handle.read(upToCount: Self.sizeLimit + 1),
            data.count <= Self.sizeLimit
        else { throw ValidationError("--config \(path) cannot be read, is empty, or is larger than 16 MiB.") }
        let bytes = Array(data)
        let value: Value
        do throws(PluginError) {
            value = try bytes.span.withUnsafeBytes { bytes throws(PluginError) in try Value(strictJSON: bytes) }
        } catch {
            throw ValidationError("\(path): \(error.message)")
        }
        let file = ConfigurationNode.File(path: path, positions: JSONPositions(bytes))
        let node = try ConfigurationNode(
            value, in: file,
            [
                "plugins", "listen", "prefix", "tokens", "tls", "hosts", "cors", "limits", "timeouts", "host", "page",
                "remote", "fleet",
            ])
        host.folders = try node.paths("plugins") ?? []
        listen = try node.text("listen") ?? listen
        tokens = try node.path("tokens")
        let hosts = try node.texts("hosts") ?? []
        for (number, host) in hosts.enumerated() where !ListenAddress.isHost(host) {
            throw node.error(
                ["hosts", String(number)], "A host is a name or an address without a port, such as “shop.example”.")
        }
        gateway.hosts = Set(hosts.map { $0.lowercased() })
        gateway.prefix = try node.text("prefix") ?? ""
        guard gateway.prefix.isEmpty || (gateway.prefix.hasPrefix("/") && !gateway.prefix.hasSuffix("/")) else {
            throw node.error(["prefix"], "“prefix” must begin with “/”, and not end with it.")
        }
        guard Self.isPath(gateway.prefix) else {
            throw node.error(
                ["prefix"],
                "“prefix” must be a path as it appears in a URL: without “?”, “#”, spaces, the segments “.” and “..”, "
                    + "and characters that are not ASCII.")
        }
        if let word = try node.text("page") {
            guard let page = GatewayConfiguration.Page(rawValue: word) else {
                throw node.error(["page"], "“page” must be “off”, “reads” or “changes”.")
            }
            gateway.page = page
        }
        try readTLS(node)
        try readCORS(node)
        try readLimits(node)
        try readTimeouts(node)
        try host.read(node)
        try readRemote(node)
        fleet = try FleetConfiguration(node, listen: listen)
    }

    /// Whether the path of a request can begin with a text.
    private static func isPath(_ text: String) -> Bool {
        text.utf8.allSatisfy { (0x21..<0x7F).contains($0) && !"?#".utf8.contains($0) }
            && !text.split(separator: "/").contains { $0 == "." || $0 == ".." }
    }

    private mutating func readTLS(_ node: ConfigurationNode) throws {
        guard let tls = try node.node("tls", ["certificate", "key", "clientCertificates"]) else { return }
        (certificate, key) = (try tls.path("certificate"), try tls.path("key"))
        clientCertificates = try tls.path("clientCertificates")
        guard certificate != nil, key != nil else {
            throw tls.error([], "“tls” must have a “certificate” and its “key”.")
        }
    }

    private mutating func readCORS(_ node: ConfigurationNode) throws {
        guard let cors = try node.node("cors", ["origins", "headers", "maxAge"]) else { return }
        guard let origins = try cors.texts("origins"), !origins.isEmpty else {
            throw cors.error([], "“cors” must have “origins”: a list such as [\"https://shop.example\"].")
        }
        for (number, origin) in origins.enumerated() where CORS(origins: [origin]) == nil {
            throw cors.error(
                ["origins", String(number)],
                "An origin is a scheme and a host, without a path, such as “https://shop.example”; with a port unless it "
                    + "is the usual one.")
        }
        gateway.cors = CORS(origins: origins)
        gateway.cors?.headers = try cors.texts("headers") ?? []
        if let age = try cors.number("maxAge", in: 0...86_400) { gateway.cors?.maximumAge = age }
    }

    private mutating func readLimits(_ node: ConfigurationNode) throws {
        let names = [
            "body", "calls", "moduleCalls", "connections", "streams", "keptEvents", "cursor", "callbackBuffer",
            "unsent",
        ]
        guard let limits = try node.node("limits", names) else { return }
        func read(_ name: String, _ value: inout Int, in range: ClosedRange<Int> = Self.counts) throws {
            value = try limits.number(name, in: range) ?? value
        }
        try read("body", &gateway.bodyLimit)
        try read("calls", &gateway.callLimit, in: Self.calls)
        try read("moduleCalls", &gateway.moduleCallLimit)
        try read("connections", &connectionLimit)
        try read("streams", &gateway.streamLimit)
        try read("keptEvents", &gateway.keptEvents)
        try read("cursor", &gateway.cursorLimit)
        try read("unsent", &gateway.unsentLimit)
        try read("callbackBuffer", &gateway.callbackBuffer)
    }

    private mutating func readTimeouts(_ node: ConfigurationNode) throws {
        let names = ["call", "maximumCall", "body", "write", "idle", "heartbeat", "drainDelay", "drain"]
        guard let timeouts = try node.node("timeouts", names) else { return }
        func read(_ name: String, _ value: inout Duration, in range: ClosedRange<Double> = Self.times) throws {
            if let seconds = try timeouts.seconds(name, in: range) { value = .seconds(seconds) }
        }
        try read("call", &gateway.callTimeout)
        try read("maximumCall", &gateway.maximumCallTimeout)
        try read("body", &gateway.bodyTimeout)
        try read("write", &gateway.writeTimeout)
        idleTimeout = try timeouts.seconds("idle") ?? idleTimeout
        try read("heartbeat", &gateway.heartbeat, in: Self.heartbeats)
        try read("drainDelay", &gateway.drainDelay, in: Self.drainTimes)
        try read("drain", &gateway.drainTimeout, in: Self.drainTimes)
    }
}

extension HostConfiguration {
    /// The settings of the host that are durations, by the names of the properties.
    private static var durations: [(String, WritableKeyPath<HostConfiguration, Duration>)] {
        [
            ("hookPatience", \.hookPatience), ("hookTimeout", \.hookTimeout), ("scanTimeout", \.scanTimeout),
            ("asyncTimeout", \.asyncTimeout), ("shutdownTimeout", \.shutdownTimeout),
            ("handOverTimeout", \.handOverTimeout), ("drainTimeout", \.drainTimeout),
        ]
    }

    private static func isScheme(_ text: String) -> Bool {
        text.first?.isLetter == true
            && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "+-.".contains($0)) }
    }

    /// Reads the settings of the host.
    fileprivate mutating func read(_ node: ConfigurationNode) throws {
        let names =
            [
                "includesSubfolders", "trustsEveryone", "safeScan", "start", "eagerModules", "registryCache",
                "stateFolder", "stagingFolder", "schemes", "environment", "modules", "isolate", "isolation",
                "interceptors", "objectTimeout", "restAfter",
            ] + Self.durations.map(\.0)
        guard let host = try node.node("host", names) else { return }
        includesSubfolders = try host.bool("includesSubfolders") ?? includesSubfolders
        trustsEveryone = try host.bool("trustsEveryone") ?? trustsEveryone
        safeScan = try host.bool("safeScan") ?? safeScan
        if let word = try host.text("start") {
            guard let start = ModuleStart(rawValue: word) else {
                throw host.error(["start"], "“start” must be “eager” or “lazy”.")
            }
            self.start = start
        }
        eagerModules = Set(try host.texts("eagerModules") ?? [])
        registryCache = try host.path("registryCache")
        stateFolder = try host.path("stateFolder")
        stagingFolder = try host.path("stagingFolder")
        if let names = try host.texts("schemes") {
            guard !names.isEmpty, names.allSatisfy(Self.isScheme) else {
                throw host.error(
                    ["schemes"], "“schemes” must be one or more schemes of URLs, such as [\"app\", \"call\"].")
            }
            schemes = names
        }
        environment = try host.text("environment") ?? environment
        for (name, value) in try host.map("modules") ?? [:] {
            guard value.map != nil else {
                throw host.error(["modules", name], "The configuration of a module must be an object: { … }.")
            }
            moduleConfiguration[name] = value
        }
        if host.value("isolate") == "all" {
            isolation.modules = .all
        } else if let names = try host.texts("isolate") {
            isolation.modules = .named(Set(names))
        }
        isolation.rules = try host.rules("isolation") { value throws(PluginError) in try IsolationRule(value) } ?? []
        interceptors = try host.rules("interceptors") { value throws(PluginError) in try InterceptorRule(value) } ?? []
        for (name, duration) in Self.durations {
            if let seconds = try host.seconds(name) { self[keyPath: duration] = .seconds(seconds) }
        }
        objectTimeout = try host.seconds("objectTimeout").map { .seconds($0) }
        let times = 1...ServeSettings.times.upperBound
        isolation.restAfter = try host.seconds("restAfter", in: times).map { .seconds($0) }
    }
}
