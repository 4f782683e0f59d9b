internal import FoundationEssentials
internal import PluginABI
internal import PluginFile
internal import PluginHost

/// The parts of the file of `--config` that concern a check, in a form that is passed to the child processes.
struct CheckedConfiguration: Codable, Sendable {
    /// The configurations of modules as JSON, by the names of the modules.
    private let modules: [String: String]
    /// The rules for isolated modules as JSON, in their order.
    private var rules: [String] = []
    /// The timeouts in seconds, by name.
    private var deadlines: [String: [Double]] = [:]

    init() { modules = [:] }

    init(_ modules: [String: Value], _ rules: [IsolationRule], _ deadlines: [(Deadline, [Duration])]) {
        (self.modules, self.rules) = (modules.mapValues(\.json), rules.map(\.json))
        for (deadline, durations) in deadlines {
            self.deadlines[deadline.name] = durations.map { $0 / .seconds(1) }
        }
    }

    /// The names of the modules in this configuration.
    private var names: Set<String> {
        let ofRules = rules.compactMap { (try? Value(json: $0))?["module"]?.string }
        return Set(modules.keys).union(ofRules).subtracting(["*"])
    }

    /// Returns a warning about each name that is nearly, but not quite, that of the checked module; `nil` if there is
    /// none, or if the module has an entry as well. Other names belong to modules that are not checked.
    func misspelling(of module: String) -> CheckResult? {
        let near = names.filter { nearest(to: $0, in: [module]) != nil }
        guard !near.isEmpty, !names.contains(module) else { return nil }
        var result = CheckResult(check: "configuration")
        for name in near.sorted() {
            result.warn(
                "The configuration names the module “\(name.shortened)”, which is not the one that is checked. Did you "
                    + "mean “\(module.shortened)”?")
        }
        return result
    }

    /// Returns the configuration for copies of files: rules for the folder of a file become rules for the copies'
    /// folder.
    func forCopies(of files: [String], in folder: String) throws(PluginError) -> CheckedConfiguration {
        let places = files.map { URL(filePath: $0).resolvingSymlinksInPath().path }
        var copy = self
        copy.rules = try rules.map { (text) throws(PluginError) in
            var rule = try IsolationRule(Value(json: text))
            guard let home = rule.folder.map({ URL(filePath: $0).resolvingSymlinksInPath().path + "/" }) else {
                return text
            }
            if places.contains(where: { $0.hasPrefix(home) }) { rule.folder = folder }
            return rule.json
        }
        return copy
    }

    /// Adds this configuration to that of a host.
    func apply(to configuration: inout PluginHost.Configuration, isolates: Bool) throws(PluginError) {
        for (name, text) in modules { configuration.moduleConfiguration[name] = try Value(json: text) }
        for deadline in Deadline.entries {
            if let durations = deadlines[deadline.name].flatMap({ deadline.durations($0) }) {
                deadline.apply(durations, to: &configuration)
            }
        }
        guard isolates else { return }
        configuration.isolation.rules = try rules.map { (text) throws(PluginError) in
            try IsolationRule(Value(json: text))
        }
    }
}
