import PluginABI

/// The address of a page: a URL, or a target and an action, as for any action.
enum PageAddress: Sendable {
    case url(String, CallOrigin)
    case action(String, String)

    /// The address as messages show it.
    var title: String {
        switch self {
        case .url(let url, _): "“\(url.shortened)”"
        case .action(let target, let action): "\(target.shortened)/\(action.shortened)"
        }
    }

    var url: String? { if case .url(let url, _) = self { url } else { nil } }

    /// Calls the action that makes the page. Also returns all parameters of the action: those given, those in the URL,
    /// and the defaults.
    func open(
        _ given: [String: Value], in context: HostContext, _ calls: Calls
    ) async throws(PluginError) -> (page: Object, parameters: [String: Value]) {
        switch self {
        case .url(let url, let origin):
            let (result, parameters) = try await calls.openObject(
                url, Parameters(given), isRemote: origin == .remote, parent: context.call)
            return (try result.result(of: title), parameters)
        case .action(let target, let action):
            let defaults = calls.defaults(of: calls.registry.table.targets[target]?.actions[action])
            guard let page = try await context.call(target, action, Parameters(given)).object else {
                throw PluginError(.invalidResult, "\(title) must return the object of a page, but returned no object.")
            }
            return (page, given.merging(defaults) { given, _ in given })
        }
    }
}
