package import PluginABI
package import PluginFile

/// An action of a target or a service, as its module declares it.
package struct DeclaredAction: Sendable {
    package let name: String
    package let isRemote: Bool
    package let parameters: [Parameter]

    package struct Parameter: Sendable {
        package let name: String
        package let kind: Value.Kind
        package let isRequired: Bool
    }

    fileprivate init(_ name: String, _ endpoint: Endpoint) {
        (self.name, isRemote) = (name, endpoint.isRemote)
        parameters = endpoint.parameters.map { Parameter(name: $0.name, kind: $0.kind, isRequired: $0.isRequired) }
    }

    fileprivate init(_ action: ModuleManifest.Action) {
        (name, isRemote) = (action.name, action.isRemote)
        parameters = action.parameters.map { Parameter(name: $0.name, kind: $0.type, isRequired: $0.isRequired) }
    }

    /// The types of the parameters, by name.
    var types: [String: Value.Kind] {
        Dictionary(parameters.lazy.map { ($0.name, $0.kind) }) { first, _ in first }
    }
}

extension PluginHost {
    /// Returns the actions of a target by name; an empty list if there is no such target. Starts no module.
    package func declaredActions(ofTarget target: String) -> [DeclaredAction] {
        let table = calls.registry.table
        let actions =
            if let found = table.targets[target] {
                found.actions.map { DeclaredAction($0, $1) }
            } else {
                table.contents.known.target(target)?.declaration.actions.map { DeclaredAction($0) } ?? []
            }
        return actions.sorted { $0.name < $1.name }
    }

    /// Returns the actions of the preferred implementation of a service; an empty list if there is none. Starts no
    /// module.
    ///
    /// - Parameter smallest: The lowest acceptable version; `nil` for any.
    package func declaredActions(ofService name: String, from smallest: SemanticVersion? = nil) -> [DeclaredAction] {
        guard let preferred = services.first(where: { $0.name == name }),
            let version = SemanticVersion(preferred.version), version >= smallest ?? version
        else { return [] }
        let actions = declaredActions(ofTarget: preferred.target)
        let table = calls.registry.table
        let started = table.services[name]?.first { $0.generation.name == preferred.module && $0.version == version }
        if let started { return actions.filter { started.actions[$0.name] != nil } }
        let registered = table.knownServices[name]?.first { $0.name == preferred.module }?.manifest.services
            .first { $0.name == name && $0.version == version }
        guard let interface = registered?.interface else { return actions }
        return actions.filter { action in interface.contains { $0.name == action.name } }
    }
}
