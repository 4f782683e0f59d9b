/// Something that the module needs to reach if the host runs it in a process of its own, in a sandbox.
///
///     Permission(toRead: "/srv/pictures", "Thumbnails are made from these pictures.")
///     Permission(toConnectTo: 443, "The pictures of some shops are on their own servers.")
///
/// A permission grants nothing by itself: until a rule in the configuration of the host grants it, an isolated module
/// waits, and its error contains the rule to add. In the process of the host, a permission has no effect.
public struct Permission: ManifestPart {
    private let key: String
    private let value: Value
    private let reason: String

    private init(_ key: String, _ value: Value, _ reason: String) {
        (self.key, self.value, self.reason) = (key, value, reason)
    }

    /// Asks to read a file, or a folder with all that it contains.
    ///
    /// - Parameters:
    ///   - path: The absolute path.
    ///   - reason: What the module needs it for, in a sentence for the operator.
    public init(toRead path: String, _ reason: String) { self.init("read", .string(path), reason) }

    /// Asks to read and change a file, or a folder with all that it contains.
    ///
    /// - Parameters:
    ///   - path: The absolute path.
    ///   - reason: What the module needs it for.
    public init(toWrite path: String, _ reason: String) { self.init("write", .string(path), reason) }

    /// Asks to connect to a TCP port on any computer.
    ///
    /// - Parameters:
    ///   - port: 1 to 65,535.
    ///   - reason: What the module needs it for.
    public init(toConnectTo port: Int, _ reason: String) { self.init("connect", .int(port), reason) }

    /// Asks to listen on a TCP port.
    ///
    /// - Parameters:
    ///   - port: 1 to 65,535.
    ///   - reason: What the module needs it for.
    public init(toListenOn port: Int, _ reason: String) { self.init("listen", .int(port), reason) }

    /// Asks to start processes.
    ///
    /// - Parameters:
    ///   - count: How many at a time, 1 to 100,000.
    ///   - reason: What the module needs them for.
    public init(toStartProcesses count: Int, _ reason: String) { self.init("processes", .int(count), reason) }

    /// Asks for a variable of the host's environment.
    ///
    /// - Parameters:
    ///   - name: The name of the variable.
    ///   - reason: What the module needs it for.
    public init(toReadVariable name: String, _ reason: String) { self.init("environment", .string(name), reason) }

    /// Asks for use of the whole network: TCP, UDP and name resolution.
    ///
    /// - Parameter reason: What the module needs it for.
    public init(toUseNetwork reason: String) { self.init("network", true, reason) }

    public func add(to module: ModuleDescription) {
        var entry = ManifestObject()
        entry.add(key, value)
        if !reason.isEmpty { entry.add("reason", .string(reason)) }
        module.permissions.append(entry.json)
    }
}

/// Makes the module wait unless the host runs it in a process of its own. The constructors and the entry function of a
/// file run in any case, before the host reads the manifest.
public struct RequiresIsolation: ManifestPart {
    public init() {}

    public func add(to module: ModuleDescription) { module.requiresIsolation = true }
}
