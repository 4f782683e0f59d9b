import PluginABI

/// What a host reports about itself, under `hosts/NAME`, until its lease expires.
public struct HostRecord: Sendable, Hashable {
    /// What a host is doing.
    public enum State: String, Sendable {
        /// The host is starting, and switches to the desired releases.
        case starting
        case ready
        /// The host has taken itself out of the balancer, to replace a module.
        case replacing
        /// The host is ending.
        case leaving
    }

    /// A module that serves.
    public struct Module: Sendable, Hashable {
        public var name: String
        public var release: ModuleRelease
        /// The number of the generation in its process; 0 for one that has not started.
        public var generation: Int
    }

    /// The name of the host.
    public var name: String
    /// The address at which the host serves.
    public var address: String
    public var state: State
    public var modules: [Module]
    /// Why the host does not serve a desired release; `nil` if it serves them all.
    public var problem: String?
    /// A random text that distinguishes two processes with the same name.
    var process: String?

    /// The most modules that a record lists.
    static let moduleLimit = 1000

    var json: Value {
        var entries: [String: Value] = [
            "address": .string(address), "state": .string(state.rawValue),
            "modules": .list(
                modules.prefix(Self.moduleLimit).map { module in
                    var entries = module.release.json.map ?? [:]
                    entries["name"] = .string(module.name)
                    entries["generation"] = .int(module.generation)
                    return .map(entries)
                }),
        ]
        if let problem { entries["problem"] = .string(problem.clean) }
        if let process { entries["process"] = .string(process) }
        return .map(entries)
    }

    /// - Parameter name: The end of the key.
    init(_ name: String, _ value: Value) throws(RecordError) {
        guard Self.isName(name) else { throw RecordError("the key does not end with the name of a host") }
        guard let address = value["address"]?.string, address == address.clean else {
            throw RecordError("“address” is not an address")
        }
        guard let state = value["state"]?.string.flatMap(State.init) else { throw RecordError("“state” is unknown") }
        guard let list = value["modules"]?.list, list.count <= Self.moduleLimit else {
            throw RecordError("“modules” is not a list of at most \(Self.moduleLimit) modules")
        }
        var modules: [Module] = []
        for entry in list {
            guard let name = entry["name"]?.string, ModuleRelease.isModule(name) else {
                throw RecordError("“modules” has an entry without a name")
            }
            modules.append(
                Module(name: name, release: try ModuleRelease(entry), generation: entry["generation"]?.int ?? 0))
        }
        self.init(
            name: name, address: address, state: state, modules: modules, problem: value["problem"]?.string?.clean)
        process = value["process"]?.string?.clean
    }

    init(name: String, address: String, state: State, modules: [Module], problem: String?) {
        (self.name, self.address, self.state, self.modules, self.problem) = (name, address, state, modules, problem)
    }

    /// Whether a text can be the name of a host.
    ///
    /// - Parameter text: The text.
    public static func isName(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count) && !text.hasPrefix(".")
            && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "_.-".contains($0)) }
    }
}
