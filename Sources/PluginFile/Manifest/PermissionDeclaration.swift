import PluginABI

extension ModuleManifest {
    /// Something that a module needs to reach if it is isolated. The declaration grants nothing.
    package struct Permission: Sendable, Hashable {
        package let subject: Subject
        /// The reason why the module needs it.
        package let reason: String

        package enum Subject: Sendable, Hashable {
            /// A file or folder, by its absolute path.
            case read(String)
            case write(String)
            /// A TCP port.
            case connect(UInt16)
            case listen(UInt16)
            /// All of the network.
            case network
            /// The number of processes that the module starts.
            case processes(Int)
            /// A variable of the host's environment.
            case environment(String)
        }
    }

    /// Whether a module may run in the process of the host.
    package enum IsolationDemand: String, Sendable, CaseIterable { case optional, required }
}

extension ModuleManifest.Permission: CustomStringConvertible {
    package var description: String {
        switch subject {
        case .read(let path): "to read \(path)"
        case .write(let path): "to change \(path)"
        case .connect(let port): "to connect to port \(port)"
        case .listen(let port): "to listen on port \(port)"
        case .network: "to use the network"
        case .processes(let count): "to start \(count) \(count == 1 ? "process" : "processes")"
        case .environment(let name): "to read the environment variable \(name)"
        }
    }
}

extension ManifestNode {
    /// Reads the permissions that the module asks for.
    func permissions() throws(PluginError) -> [ModuleManifest.Permission] {
        try elements("permissions", "permission") { node, before throws(PluginError) in
            let permission = try node.permission()
            try check(
                !before.contains { $0.subject == permission.subject },
                else: "the permission \(permission) is asked for twice")
            return permission
        }
    }

    private func permission() throws(PluginError) -> ModuleManifest.Permission {
        let kinds = ["read", "write", "connect", "listen", "network", "processes", "environment"]
        try checkKeys(kinds + ["reason"])
        let given = kinds.filter { self[$0] != nil }
        guard given.count == 1 else {
            throw error("it must have one of these keys: \(kinds.joined(separator: ", "))")
        }
        let subject: ModuleManifest.Permission.Subject =
            switch given[0] {
            case "read": .read(try path("read"))
            case "write": .write(try path("write"))
            case "connect": .connect(try port("connect"))
            case "listen": .listen(try port("listen"))
            case "processes": .processes(try processes())
            case "environment": .environment(try string("environment"))
            default: try network()
            }
        return .init(subject: subject, reason: try optional("reason", \.string, "a string") ?? "")
    }

    private func path(_ key: String) throws(PluginError) -> String {
        let path = try string(key)
        try check(
            path.utf8.starts(with: "/".utf8) && !path.utf8.contains(0),
            else: "\"\(key)\" must be an absolute path, not \"\(path.shortened)\"")
        return path
    }

    private func port(_ key: String) throws(PluginError) -> UInt16 {
        let number = try required(key, \.int, "a port, 1 to 65535")
        guard let port = UInt16(exactly: number), port > 0 else { throw error("\"\(key)\" must be a port, 1 to 65535") }
        return port
    }

    private func processes() throws(PluginError) -> Int {
        let count = try required("processes", \.int, "a whole number")
        try check((1...100_000).contains(count), else: "\"processes\" must be from 1 to 100000")
        return count
    }

    private func network() throws(PluginError) -> ModuleManifest.Permission.Subject {
        try check(try flag("network"), else: "\"network\" must be true")
        return .network
    }
}
