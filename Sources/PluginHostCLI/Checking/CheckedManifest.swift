internal import PluginABI

/// The parts of a manifest that the checks need. A host has already accepted the manifest.
struct CheckedManifest: Sendable {
    struct Parameter: Sendable {
        fileprivate let record: Value
        var name: String { record.text("name") }
        var kind: Value.Kind { record.kind("type") }
        var isRequired: Bool { record["required"] == true }
    }

    struct Action: Sendable {
        fileprivate let record: Value
        var name: String { record.text("name") }
        var isAsync: Bool { record["async"] == true }
        var isRemote: Bool { record["remote"] == true }
        var result: Value.Kind { record.kind("result") }
        var parameters: [Parameter] { record.list("parameters").map(Parameter.init) }
        var hasRest: Bool { record["rest"] == true }
    }

    /// A target or an object type.
    struct Group: Sendable {
        fileprivate let record: Value
        var name: String { record.text("name") }
        var actions: [Action] { record.list("actions").map(Action.init) }
    }

    private let record: Value

    init(_ manifest: Value) { record = manifest }

    var name: String { record.text("name") }
    var version: String { record.text("version") }
    var targets: [Group] { record.list("targets").map(Group.init) }
    var types: [Group] { record.list("types").map(Group.init) }
    var events: [Action] { record.list("events").map(Action.init) }

    /// The modules and services that the module requires to start.
    var requires: [String] {
        record.list("requires").filter { $0["optional"] != true }
            .compactMap { $0["module"]?.string ?? $0["service"]?.string }
    }

    /// The names of the hooks.
    var hooks: [String] { record.list("hooks").compactMap { $0.string ?? $0["name"]?.string } }

    /// Every action of a target except `notFound`, with the target's name.
    var actions: [(target: String, action: Action)] {
        targets.flatMap { target in
            target.actions.filter { $0.name != "notFound" }.map { (target.name, $0) }
        }
    }
}

extension CheckedManifest.Action {
    /// Makes an action of which only the name is known.
    init(named name: String) { record = ["name": .string(name)] }
}

extension Value {
    fileprivate func kind(_ key: String) -> Kind { self[key]?.string.flatMap(Kind.init) ?? .any }
}
