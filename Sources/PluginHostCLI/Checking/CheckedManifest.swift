internal import PluginABI

/// The parts of a manifest that the checks need. A host has already accepted the manifest.
struct CheckedManifest: Sendable {
    struct Parameter: Sendable {
        fileprivate let record: Value
        fileprivate let declared: CheckedTypes
        var name: String { record.text("name") }
        var kind: Value.Kind { declared.kind(type) }
        var type: String { record.text("type") }
        var isRequired: Bool { record["required"] == true }
    }

    struct Action: Sendable {
        fileprivate let record: Value
        fileprivate let declared: CheckedTypes
        var name: String { record.text("name") }
        var isAsync: Bool { record["async"] == true }
        var isRemote: Bool { record["remote"] == true }
        var result: Value.Kind { declared.kind(record.text("result")) }
        var parameters: [Parameter] { record.list("parameters").map { Parameter(record: $0, declared: declared) } }
        var hasRest: Bool { record["rest"] == true }
    }

    /// A target or an object type.
    struct Group: Sendable {
        fileprivate let record: Value
        fileprivate let declared: CheckedTypes
        var name: String { record.text("name") }
        var actions: [Action] { record.list("actions").map { Action(record: $0, declared: declared) } }
    }

    private let record: Value
    /// The declared types, which say more than kinds.
    let declared: CheckedTypes

    init(_ manifest: Value) { (record, declared) = (manifest, CheckedTypes(manifest)) }

    var name: String { record.text("name") }
    var version: String { record.text("version") }
    var targets: [Group] { record.list("targets").map { Group(record: $0, declared: declared) } }
    var types: [Group] { record.list("types").map { Group(record: $0, declared: declared) } }
    var events: [Action] { record.list("events").map { Action(record: $0, declared: declared) } }

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
    init(named name: String) { (record, declared) = (["name": .string(name)], CheckedTypes([:])) }
}
