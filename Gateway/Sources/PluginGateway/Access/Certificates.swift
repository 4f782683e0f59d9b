import NIOCore
import NIOSSL
import SwiftASN1
import X509

extension Departures {
    /// Returns the client that has presented a certificate, named by its subject (`CN=ada,O=Shop`); `nil` if none was
    /// presented. The server has verified the certificate, which is read once for each connection.
    func certificate(of connection: Connection) async -> Client? {
        let connected = find(connection).connected
        if let known = connected?.client { return known }
        guard let certificate = try? await connection.channel.nioSSL_peerCertificate().get(),
            let bytes = try? certificate.toDERBytes()
        else { return nil }
        let subject = (try? Certificate(derEncoded: bytes))?.subject.description ?? ""
        let client = Client(name: subject.isEmpty || subject.utf8.count > 1024 ? nil : subject)
        connected?.client = client
        return client
    }
}
