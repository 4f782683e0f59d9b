import ArgumentParser
import Foundation
import Hummingbird
import HummingbirdCore
import HummingbirdTLS
import NIOCore
import NIOSSL
import PluginGateway
import PluginHost

extension ServeSettings {
    /// Checks what can be checked without opening files.
    func check() throws {
        let address = try ListenAddress(listen)
        guard tokens != nil || clientCertificates != nil || address.isLoopback else {
            throw ValidationError(
                "--listen \(listen) can be reached from other machines. Give --tokens FILE, or listen on 127.0.0.1.")
        }
        guard clientCertificates == nil || certificate != nil else {
            throw ValidationError("--client-certificates needs --certificate and --key, because it needs HTTPS.")
        }
        guard (certificate == nil) == (key == nil) else {
            throw ValidationError("Give both --certificate and --key, or neither.")
        }
        guard !host.folders.isEmpty else {
            throw ValidationError("Give --plugins FOLDER, or “plugins” in the configuration file.")
        }
        for folder in host.folders {
            var isFolder: ObjCBool = false
            guard FileManager.default.fileExists(atPath: folder, isDirectory: &isFolder), isFolder.boolValue else {
                throw ValidationError(
                    "--plugins \(folder) is not a folder that exists. Create it, or name another one.")
            }
        }
    }

    func server(_ gateway: PluginGateway) throws -> HTTPServerBuilder {
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
            throw ValidationError("\(option) \(file) cannot be read, or contains no PEM certificate.")
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

    /// Whether the header `Host` can have this name: one without a port.
    static func isHost(_ text: String) -> Bool {
        let isAddress = text.hasPrefix("[") && text.hasSuffix("]")
        let name = isAddress ? text.dropFirst().dropLast() : text[...]
        return (1...253).contains(name.utf8.count)
            && name.allSatisfy {
                $0.isASCII && ($0.isLetter || $0.isNumber || (isAddress ? ":." : ".-_").contains($0))
            }
    }

    var shownHost: String { host.contains(":") ? "[\(host)]" : host }

    /// Whether only this machine can reach the address. A name other than `localhost` can lead anywhere.
    var isLoopback: Bool {
        if host == "localhost" { return true }
        guard let address = try? SocketAddress(ipAddress: host, port: 0).ipAddress else { return false }
        return address == "::1" || address.hasPrefix("127.")
    }
}

/// The program cannot listen on its address.
struct ListenError: Error, CustomStringConvertible {
    let address: String
    let reason: String

    var description: String { "The program cannot listen on \(address): \(reason)." }
}
