internal import PluginABI

/// What the checks need of a manifest that a host has taken already.
struct CheckedManifest: Sendable {
    struct Parameter: Sendable {
        let name: String
        let kind: Value.Kind
        let isRequired: Bool
    }

    struct Action: Sendable {
        let name: String
        let isAsync: Bool
        let isRemote: Bool
        let result: Value.Kind
        let parameters: [Parameter]
    }

    /// A target or a type of objects.
    struct Group: Sendable {
        let name: String
        let actions: [Action]
    }

    let name: String
    let version: String
    let targets: [Group]
    let types: [Group]
    let events: [Action]
    let requires: [String]

    init(_ manifest: Value) {
        name = manifest["name"]?.string ?? ""
        version = manifest["version"]?.string ?? ""
        targets = (manifest["targets"]?.list ?? []).map(Group.init)
        types = (manifest["types"]?.list ?? []).map(Group.init)
        events = (manifest["events"]?.list ?? []).map(Action.init)
        requires = (manifest["requires"]?.list ?? []).filter { $0["optional"] != true }
            .compactMap { $0["module"]?.string ?? $0["service"]?.string }
    }

    /// Every action of a target that others call, with the target's name.
    var actions: [(target: String, action: Action)] {
        targets.flatMap { target in
            target.actions.filter { $0.name != "notFound" }.map { (target.name, $0) }
        }
    }
}

extension CheckedManifest.Group {
    fileprivate init(_ value: Value) {
        name = value["name"]?.string ?? ""
        actions = (value["actions"]?.list ?? []).map(CheckedManifest.Action.init)
    }
}

extension CheckedManifest.Action {
    /// One of which no more than the name is known.
    init(named name: String) {
        self.init(name: name, isAsync: false, isRemote: false, result: .any, parameters: [])
    }

    fileprivate init(_ value: Value) {
        name = value["name"]?.string ?? ""
        isAsync = value["async"] == true
        isRemote = value["remote"] == true
        result = value["result"]?.string.flatMap(Value.Kind.init) ?? .any
        parameters = (value["parameters"]?.list ?? []).map { parameter in
            CheckedManifest.Parameter(
                name: parameter["name"]?.string ?? "", kind: parameter["type"]?.string.flatMap(Value.Kind.init) ?? .any,
                isRequired: parameter["required"] == true)
        }
    }
}
