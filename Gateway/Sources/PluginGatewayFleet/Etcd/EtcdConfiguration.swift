/// How to reach etcd.
public struct EtcdConfiguration: Sendable {
    /// The URLs of the members of the etcd cluster, such as `https://10.0.0.1:2379`; 1 to 16. They are tried in turn.
    public var endpoints: [String]
    /// The name of the user, if etcd requires one, and the file with the password in its first line. etcd does not
    /// accept a certificate as a user on its HTTP interface.
    public var user: String?
    public var passwordFile: String?
    /// The file with the certificates that sign those of etcd, in PEM; `nil` for those of the system.
    public var certificateAuthority: String?
    /// The files with the certificate of this client and its key, in PEM, if etcd requires them.
    public var certificate: String?
    public var key: String?
    /// How long one endpoint may take to answer a request.
    public var timeout: Duration = .seconds(2)

    /// - Parameter endpoints: The URLs of the members of the etcd cluster.
    public init(endpoints: [String]) { self.endpoints = endpoints }

    /// Returns why a text cannot be the URL of an endpoint; `nil` if it can.
    ///
    /// - Parameter text: The text.
    public static func problem(ofEndpoint text: String) -> String? {
        let rest = ["http://", "https://"].compactMap { text.hasPrefix($0) ? text.dropFirst($0.count) : nil }.first
        guard let rest, (1...300).contains(rest.utf8.count),
            rest.utf8.allSatisfy({ byte in
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "[]:.-_".utf8.contains(byte)
                    || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
            })
        else { return "“\(text.clean)” is not a URL such as http://10.0.0.1:2379, without a path." }
        return nil
    }
}

/// The reason why a request to etcd failed.
public struct EtcdError: Error, Sendable, CustomStringConvertible {
    /// The kinds of reasons.
    public enum Code: Sendable {
        /// No endpoint answered. Nothing was changed.
        case unavailable
        /// A change was not answered: it is unknown whether it was made.
        case unknown
        /// etcd answered with an error.
        case refused
        /// The lease has expired.
        case leaseNotFound
        /// The user or the password is wrong, or the user lacks a permission.
        case unauthenticated
        /// The answer is too large, or does not come from etcd.
        case invalidAnswer
    }

    public let code: Code
    public let description: String

    init(_ code: Code, _ description: String) { (self.code, self.description) = (code, description) }
}

extension String {
    /// The text without control characters, and of at most 300 characters, for logs and terminals, since it may come
    /// from etcd.
    package var clean: String {
        let text = String(
            String.UnicodeScalarView(
                unicodeScalars.prefix(301).map { scalar in
                    switch scalar.properties.generalCategory {
                    case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate, .unassigned:
                        "\u{FFFD}"
                    default: scalar
                    }
                }))
        return unicodeScalars.count > 300 ? text.prefix(299) + "…" : text
    }
}
