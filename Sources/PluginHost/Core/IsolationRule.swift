import PluginFile

/// A rule that states what the process of an isolated module may reach and use.
///
///     configuration.isolation.rules = [IsolationRule("Thumbnails", folder: "/srv/plugins")]
///     configuration.isolation.rules[0].readablePaths = ["/srv/pictures"]
///
/// A module that a rule names is isolated. Without grants, its process reads only libraries, time zones, locales, and
/// the copy of its own file; it has no network, and starts no programs. `IsolationRule("*")` applies to an isolated
/// module without a rule. The restrictions begin before the file is opened. See <doc:IsolatedModules>.
public struct IsolationRule: Sendable, Hashable {
    /// Whether the process is restricted to what is granted.
    public enum Sandbox: String, Sendable, Hashable, CaseIterable {
        /// The module does not start if the system lacks a part of the sandbox.
        case required
        /// A part that the system lacks is left out; the log and ``GenerationStatus/missingProtections`` name it.
        case possible
        /// The process has the rights of the host. The limits of memory, processor time and descriptors still hold.
        case none
    }

    /// The parts of a network that the process may reach.
    public enum Network: Sendable, Hashable {
        /// No other process and no other computer.
        case none
        /// TCP connections to ports of any computer, and ports on which it listens, 1 to 65,535. Names of computers
        /// cannot be resolved, since that needs UDP.
        case ports(connect: [UInt16], listen: [UInt16])
        /// All of IPv4 and IPv6.
        case all
    }

    /// The name of the module, or `*` for every module that no other rule names.
    public var module: String
    /// The folder that contains the module's file, directly or in a subfolder; `nil` for any folder. The rule does not
    /// apply to a file elsewhere, whose module is isolated all the same.
    public var folder: String?
    /// Whether the process is restricted to what is granted. Default: as far as the system supports it.
    public var sandbox = Sandbox.possible
    /// The absolute paths of files and folders that the module may read, with all that these folders contain. They must
    /// exist.
    public var readablePaths: [String] = []
    /// The absolute paths of files and folders that the module may read and change. They must exist.
    public var writablePaths: [String] = []
    /// The parts of a network that the module may reach. Default: none.
    public var network = Network.none
    /// The maximum size in bytes of the process's heap, stacks and other writable memory; `nil` for no limit. Beyond
    /// it, the module gets no more memory. Default: 4 GiB. Without effect in programs built with a sanitizer.
    public var memoryLimit: Int? = 4 << 30
    /// The processor time after which the process is ended, which counts as a crash, in whole seconds; `nil` for no
    /// limit. Default: none.
    public var processorTime: Duration?
    /// The maximum number of open file descriptors, at least 16. Default: 256.
    public var descriptorLimit = 256
    /// How many processes the module may start. Default: 0. The system limits processes and threads together, to 1,024
    /// more than this number, and does not limit those of root. The processes may run programs in `/bin`, `/usr/bin`,
    /// `/usr/local/bin` and the paths that the module may read, and may outlive the module.
    public var processLimit = 0
    /// The names of the variables of the host's environment that it gets, besides `LANG`, `LC_ALL`, `LC_CTYPE`, `TZ`,
    /// `PATH` and `LD_LIBRARY_PATH`. Without a sandbox it gets all of them.
    public var environment: [String] = []
    /// See ``Isolation/callTimeout``; `nil` for the value that applies to all modules.
    public var callTimeout: Duration?
    /// See ``Isolation/hangGrace``; `nil` for the value that applies to all modules.
    public var hangGrace: Duration?

    /// Creates a rule that grants nothing.
    ///
    /// - Parameters:
    ///   - module: The name of the module, or `*`.
    ///   - folder: The folder that contains its file; `nil` for any folder.
    public init(_ module: String, folder: String? = nil) { (self.module, self.folder) = (module, folder) }
}

extension Isolation {
    /// Whether there may be modules in processes of their own.
    var isolatesSome: Bool { modules != .none || !rules.isEmpty || !debuggedModules.isEmpty }

    /// Whether all modules in files are in processes of their own.
    var isolatesAll: Bool { modules == .all || rules.contains { $0.module == "*" } }

    /// Returns whether a module runs in a process of its own.
    func isolates(_ module: String) -> Bool {
        if debuggedModules.contains(module) { return true }
        switch modules {
        case .all: return true
        case .named(let names) where names.contains(module): return true
        case .named, .none: return rules.contains { $0.module == "*" || $0.module == module }
        }
    }

    /// Returns what applies to an isolated module: the first rule that names it, else the first for all modules.
    ///
    /// - Parameter file: The path of its file, without links.
    func rule(for module: String, file: String) -> IsolationRule {
        let rules = rules.filter { $0.isAbout(file) }
        return rules.first { $0.module == module } ?? rules.first { $0.module == "*" } ?? IsolationRule("*")
    }

    /// Returns the settings with the times of a rule.
    func with(_ rule: IsolationRule) -> Isolation {
        var isolation = self
        if let time = rule.callTimeout { isolation.callTimeout = time }
        if let time = rule.hangGrace { isolation.hangGrace = time }
        return isolation
    }
}

extension IsolationRule {
    fileprivate func isAbout(_ file: String) -> Bool {
        guard let folder else { return true }
        return file.isBelow(folder.withoutLinks)
    }
}
