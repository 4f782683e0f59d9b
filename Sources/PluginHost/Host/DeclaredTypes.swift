package import PluginABI
import PluginFile

// For programs whose users enter parameters as text, as on a command line.

/// The address of a call or an event.
package enum CallAddress: Sendable {
    case action(target: String, String)
    /// - Parameter version: The lowest version; `nil` for any.
    case service(String, version: String?, action: String)
    case object(Object, action: String)
    case url(String)
    case event(String)
}

extension PluginHost {
    /// Returns the declared types of the parameters that an address takes, by name. For an event, these are the
    /// parameters of all subscribers in modules; a parameter that they declare with different types has the type `any`.
    ///
    /// - Returns: `nil` if there is no such action, or if it takes any parameters, as a callback does.
    package func declaredTypes(at address: CallAddress) -> [String: Value.Kind]? {
        switch address {
        case .action(let target, let action):
            return declaredActions(ofTarget: target).first { $0.name == action }?.types
        case .service(let name, let version, let action):
            let smallest = version.map(SemanticVersion.init)
            if let smallest, smallest == nil { return nil }
            return declaredActions(ofService: name, from: smallest ?? nil).first { $0.name == action }?.types
        case .object(let object, let action):
            return ObjectTable.contents(of: object.handle).0.actions[action]?.declaredTypes
        case .url(let url):
            let found = try? url.withRawText { (url) throws(PluginError) in
                let table = try calls.tableStarting(url, isRemote: false, method: .get)
                return try calls.resolve(url, 0, table) { table.find($0.target, $0.action) }
            }
            return found?.takeUnretainedValue().declaredTypes
        case .event(let event):
            var types: [String: Value.Kind] = [:]
            _ = try? calls.startAll(calls.registry.table.contents.known.subscribers[event])
            for endpoint in calls.registry.table.moduleSubscribers(of: event) {
                for parameter in endpoint.parameters {
                    let isAgreed = types.updateValue(parameter.kind, forKey: parameter.name).map {
                        $0 == parameter.kind
                    }
                    if isAgreed == false { types[parameter.name] = .any }
                }
            }
            return types
        }
    }
}

extension Endpoint {
    fileprivate var declaredTypes: [String: Value.Kind]? {
        if isVariadic { return nil }
        return Dictionary(parameters.lazy.map { ($0.name, $0.kind) }) { first, _ in first }
    }
}
