import PluginABI

/// The address of a page: a URL, or a target and an action, as for any action; or a page that the caller holds.
enum PageAddress: Sendable {
    /// - Parameter isAdmitted: Whether the guard has already let the URL pass.
    case url(String, CallOrigin, isAdmitted: Bool = false)
    case action(String, String)
    /// - Parameter url: The URL that made the page, if any.
    case page(Object, url: String? = nil)

    /// The address as messages show it.
    var title: String {
        switch self {
        case .url(let url, _, _): "“\(url.shortened)”"
        case .action(let target, let action): "\(target.shortened)/\(action.shortened)"
        case .page(let object, _): "The object \(object.handle)"
        }
    }

    var url: String? {
        switch self {
        case .url(let url, _, _): url
        case .page(_, let url): url
        case .action: nil
        }
    }

    /// Returns the page. Calls the action that makes it, unless the caller holds it. Also returns all parameters: those
    /// given, those in the URL, and the defaults.
    func open(
        _ given: [String: Value], in context: HostContext, _ calls: Calls
    ) async throws(PluginError) -> (page: Object, parameters: [String: Value]) {
        switch self {
        case .url(let url, let origin, let isAdmitted):
            let (result, parameters) = try await calls.openObject(
                url, Parameters(given), isRemote: origin == .remote, isAdmitted: isAdmitted, parent: context.call)
            return (try result.result(of: title), parameters)
        case .action(let target, let action):
            let defaults = calls.defaults(of: calls.registry.table.targets[target]?.actions[action])
            guard let page = try await context.call(target, action, Parameters(given)).object else {
                throw PluginError(.invalidResult, "\(title) must return the object of a page, but returned no object.")
            }
            return (page, given.merging(defaults) { given, _ in given })
        case .page(let object, _): return (object, given)
        }
    }
}
