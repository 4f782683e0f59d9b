import CPluginABI
public import PluginABI
import Synchronization

/// A call that comes from another program, as the program's guard sees it before it is made.
public struct RemoteCall: Sendable {
    /// The URL as it was given.
    public let url: String
    /// In lower case; nil for a URL without one.
    public let scheme: String?
    /// In lower case; nil for a URL without one.
    public let host: String?
    /// What the URL leads to; nil where it leads nowhere.
    public let target: String?
    /// The action of the target that the URL leads to; nil where it leads nowhere.
    public let action: String?
    /// What rides along with the URL.
    public let parameters: [String: Value]
}

/// What a guard says of a remote call.
public enum RemoteDecision: Sendable {
    /// Let it be made. It still reaches remote actions only.
    case pass
    /// End it with ``/PluginABI/PluginError/Code/refused`` and this message.
    case refuse(String)
    /// Open this URL instead, as a remote call; the guard is not asked again.
    case redirect(String)
}

/// Decides about remote calls. Called on the thread of the call, also concurrently; must not have side effects, since
/// `canOpen` asks it, too.
public typealias RemoteGuard = @Sendable (RemoteCall) -> RemoteDecision

extension Dispatcher {
    /// Finds what a URL leads to, after the guard has been asked.
    ///
    /// - Throws: `invalidURL`, `refused`, `hostStopped`.
    func resolve(
        _ text: String, _ given: UnsafeBufferPointer<plugin_entry>, isRemote: Bool, _ table: Table
    ) throws(PluginError) -> URLResolution {
        var url = try URLText(text)
        if table.isStopped { throw table.missing(url.writtenHost, PathScalars.text(url.path.dropFirst())) }
        if isRemote, let remoteGuard = remoteGuard.withLock({ $0 }) {
            let found = try? table.resolve(url, schemes: settings.schemes)
            let program = program.hostTable!
            let parameters = Dictionary(
                given.map { ($0.key.text, Value(copying: $0.value, host: program)) }, uniquingKeysWith: { a, _ in a })
            let call = RemoteCall(
                url: text, scheme: url.scheme, host: url.host, target: found?.target, action: found?.action,
                parameters: parameters)
            switch remoteGuard(call) {
            case .pass: break
            case .refuse(let message): throw PluginError(.refused, message)
            case .redirect(let other): url = try URLText(other)
            }
        }
        return try table.resolve(url, schemes: settings.schemes)
    }

    /// Whether opening a URL would reach an action: it resolves, its parameters check, and the guard passes.
    ///
    /// - Throws: what `open` would throw before it calls the action.
    func checkOpen(_ url: String, _ parameters: Parameters, isRemote: Bool) throws(PluginError) {
        let table = registry.table
        try parameters.withEntries { (entries, count) throws(PluginError) in
            let given = UnsafeBufferPointer(start: entries, count: count)
            let resolution = try resolve(url, given, isRemote: isRemote, table)
            guard let endpoint = table.targets[resolution.target]?.actions[resolution.action] else {
                throw table.missing(resolution.target, resolution.action)
            }
            if isRemote, !endpoint.isRemote { throw .notRemote(endpoint) }
            let carried = try resolution.parameters(
                for: Array(endpoint.parameters), overriddenBy: given, asksForObject: false)
            try carried.withEntries { (entries, count) throws(PluginError) in
                let all = Array(given) + UnsafeBufferPointer(start: entries, count: count)
                try all.withUnsafeBufferPointer { (all) throws(PluginError) in
                    try withUnsafeTemporaryAllocation(of: plugin_value.self, capacity: endpoint.parameters.count) {
                        (arguments) throws(PluginError) in try endpoint.bind(all, to: arguments)
                    }
                }
            }
        }
    }
}
