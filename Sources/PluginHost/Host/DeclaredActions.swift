package import PluginABI
import PluginFile

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
}

extension PluginHost {
    /// Returns the actions of a target by name; an empty list if there is no such target.
    package func declaredActions(ofTarget target: String) -> [DeclaredAction] {
        declared(calls.tableStarting(target: target).targets[target]?.actions)
    }

    /// Returns the actions of the preferred implementation of a service; an empty list if there is none.
    package func declaredActions(ofService service: String) -> [DeclaredAction] {
        declared(calls.tableStarting(service: service).service(service, from: nil)?.actions)
    }

    private func declared(_ actions: [String: Endpoint]?) -> [DeclaredAction] {
        (actions ?? [:]).sorted { $0.key < $1.key }.map { name, endpoint in
            DeclaredAction(
                name: name, isRemote: endpoint.isRemote,
                parameters: endpoint.parameters.map {
                    DeclaredAction.Parameter(name: $0.name, kind: $0.kind, isRequired: $0.isRequired)
                })
        }
    }
}
