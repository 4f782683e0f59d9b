internal import PluginABI
internal import PluginHost

/// What the file of `--config` says for a check, in a form that is passed to the child processes.
struct CheckedConfiguration: Codable, Sendable {
    /// The configurations of modules as JSON, by the names of the modules.
    private let modules: [String: String]
    /// The rules for isolated modules as JSON, in their order.
    private let rules: [String]

    init(_ modules: [String: Value] = [:], _ rules: [IsolationRule] = []) {
        (self.modules, self.rules) = (modules.mapValues(\.json), rules.map(\.json))
    }

    /// Changes the configuration of a host accordingly.
    func apply(to configuration: inout PluginHost.Configuration, isolates: Bool) throws(PluginError) {
        for (name, text) in modules { configuration.moduleConfiguration[name] = try Value(json: text) }
        guard isolates else { return }
        configuration.isolation.rules = try rules.map { (text) throws(PluginError) in
            try IsolationRule(Value(json: text))
        }
    }
}
