import ArgumentParser
import Foundation
import Logging
import NIOSSL
import PluginABI
import PluginHost
import RemoteModules

/// One mount of the setting `remote`.
struct RemoteSettings {
    let url: String
    let targets: [String]
    private(set) var configuration = RemoteConfiguration()
    /// The paths of files for TLS.
    private var authorities: String?
    private var certificate: String?
    private var key: String?

    static let names = [
        "url", "targets", "token", "tls", "timeout", "connectTimeout", "interval", "calls", "connections", "answer",
        "hops", "reexport", "breaker",
    ]

    init(_ node: ConfigurationNode) throws {
        guard let url = try node.text("url") else {
            throw node.error([], "A mount must have a “url”, such as “https://balancer.example”.")
        }
        guard let targets = try node.texts("targets"), !targets.isEmpty else {
            throw node.error([], "A mount must have “targets”: a list such as [\"Shop\"].")
        }
        (self.url, self.targets) = (url, targets)
        do throws(PluginError) { try RemoteModules.check(url: url) } catch { throw node.error(["url"], error.message) }
        for (number, target) in targets.enumerated() {
            do throws(PluginError) { try RemoteModules.check(target: target) } catch {
                throw node.error(["targets", String(number)], error.message)
            }
            guard !targets[..<number].contains(target) else {
                throw node.error(["targets", String(number)], "The target “\(target)” is listed twice.")
            }
        }
        guard targets.count <= RemoteModules.targetLimit else {
            throw node.error(["targets"], "A mount has at most \(RemoteModules.targetLimit) targets.")
        }
        configuration.tokenFile = try node.path("token")
        try readLimits(node)
        try readTLS(node)
        try readBreaker(node)
    }

    private mutating func readLimits(_ node: ConfigurationNode) throws {
        func read(_ name: String, _ value: inout Duration) throws {
            if let seconds = try node.seconds(name) { value = .seconds(seconds) }
        }
        func read(_ name: String, _ value: inout Int, in range: ClosedRange<Int>) throws {
            value = try node.number(name, in: range) ?? value
        }
        try read("timeout", &configuration.callTimeout)
        try read("connectTimeout", &configuration.connectTimeout)
        try read("interval", &configuration.interval)
        try read("calls", &configuration.callLimit, in: ServeSettings.calls)
        try read("connections", &configuration.connectionLimit, in: ServeSettings.calls)
        try read("answer", &configuration.answerLimit, in: ServeSettings.counts)
        try read("hops", &configuration.hopLimit, in: 1...16)
        configuration.isReexported = try node.bool("reexport") ?? false
    }

    private mutating func readTLS(_ node: ConfigurationNode) throws {
        guard let tls = try node.node("tls", ["authorities", "certificate", "key"]) else { return }
        authorities = try tls.path("authorities")
        (certificate, key) = (try tls.path("certificate"), try tls.path("key"))
        guard (certificate == nil) == (key == nil) else {
            throw tls.error([], "“tls” must have both “certificate” and “key”, or neither.")
        }
    }

    private mutating func readBreaker(_ node: ConfigurationNode) throws {
        guard let breaker = try node.node("breaker", ["failures", "share", "window", "pause"]) else { return }
        let counts = 1...10_000
        configuration.breaker.failures =
            try breaker.number("failures", in: counts) ?? configuration.breaker.failures
        configuration.breaker.window = try breaker.number("window", in: counts) ?? configuration.breaker.window
        if let share = breaker.value("share") {
            guard let share = share.double, share > 0, share <= 1 else {
                throw breaker.error(["share"], "“share” must be a number more than 0, and at most 1.")
            }
            configuration.breaker.share = share
        }
        if let pause = try breaker.seconds("pause") { configuration.breaker.pause = .seconds(pause) }
    }

    /// Mounts the targets.
    func mount(in host: PluginHost, _ logger: Logger) throws -> RemoteModules {
        var configuration = configuration
        if authorities != nil || certificate != nil {
            var tls = TLSConfiguration.makeClientConfiguration()
            if let authorities { tls.trustRoots = .certificates(try certificates("authorities", authorities)) }
            if let certificate, let key {
                tls.certificateChain = try certificates("certificate", certificate).map { .certificate($0) }
                guard let privateKey = try? NIOSSLPrivateKey(file: key, format: .pem) else {
                    throw ValidationError("“key” of \(url), \(key), cannot be read, or is not a private key in PEM.")
                }
                tls.privateKey = .privateKey(privateKey)
            }
            configuration.tls = tls
        }
        do throws(PluginError) {
            return try RemoteModules(of: url, targets: targets, in: host, configuration, logger: logger)
        } catch {
            throw ValidationError("“remote”, \(url): \(error.message)")
        }
    }

    private func certificates(_ name: String, _ file: String) throws -> [NIOSSLCertificate] {
        guard let certificates = try? NIOSSLCertificate.fromPEMFile(file), !certificates.isEmpty else {
            throw ValidationError("“\(name)” of \(url), \(file), cannot be read, or contains no PEM certificate.")
        }
        return certificates
    }
}

extension ServeSettings {
    mutating func readRemote(_ node: ConfigurationNode) throws {
        remote = try node.nodes("remote", RemoteSettings.names).map(RemoteSettings.init)
        var mounted: Set<String> = []
        for (number, mount) in remote.enumerated() {
            for (place, target) in mount.targets.enumerated() where !mounted.insert(target).inserted {
                throw node.error(
                    ["remote", String(number), "targets", String(place)], "The target “\(target)” is mounted twice.")
            }
        }
    }
}
