import PluginABI

/// How a page is found: as any action.
enum PageAddress: Sendable {
    case url(String, CallOrigin)
    case action(String, String)

    /// For messages.
    var title: String {
        switch self {
        case .url(let url, _): "“\(url.shortened)”"
        case .action(let target, let action): "\(target)/\(action)"
        }
    }

    var url: String? { if case .url(let url, _) = self { url } else { nil } }

    /// Calls the action that makes the page. Also returns all that the action gets: what is given, what stands in the URL,
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
                throw PluginError(.invalidResult, "\(title) gave no object, which a page is.")
            }
            return (page, given.merging(defaults) { given, _ in given })
        }
    }
}
