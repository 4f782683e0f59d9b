import PluginABI

/// The address of a page: a URL, or a target and an action, as for any action; or a page that the caller holds.
enum PageAddress: Sendable {
    /// - Parameter admission: The decision of the guard, if it has already been asked.
    case url(String, CallOrigin, _ admission: RemoteAdmission? = nil)
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

    /// Returns the page. Calls the action that makes it, with those parameters that it accepts, unless the caller holds
    /// the page. Also returns all parameters: those given, those in the URL, and the defaults.
    func open(
        _ given: [String: Value], in context: HostContext, _ calls: Calls
    ) async throws(PluginError) -> (page: Object, parameters: PageParameters) {
        switch self {
        case .url(let url, let origin, let admission):
            let (result, parameters) = try await calls.openPage(
                url, Parameters(given), isRemote: origin == .remote, admission: admission, parent: context.call)
            return (try result.result(of: title), parameters)
        case .action(let target, let action):
            if let known = calls.registry.table.contents.known.target(target) {
                try await calls.startInTask(known.module, parent: context.call)
            }
            let endpoint = calls.registry.table.targets[target]?.actions[action]
            let accepted = given.filter { name, _ in name.withPluginString { endpoint?.accepts($0) ?? true } }
            guard let page = try await context.call(target, action, Parameters(accepted)).object else {
                throw PluginError(.invalidResult, "\(title) must return the object of a page, but returned no object.")
            }
            return (page, PageParameters(values: given.merging(calls.defaults(of: endpoint)) { given, _ in given }))
        case .page(let object, _): return (object, PageParameters(values: given))
        }
    }
}

extension PageParameters {
    /// Returns the parameters, with text of a URL converted to the type of the property that it sets.
    ///
    /// - Throws: `mistypedParameter` for text that is not a value of that type.
    func converted(for type: ObjectTypeEntry) throws(PluginError) -> [String: Value] {
        var converted = values
        for name in texts.sorted() {
            guard let property = type.actions["set." + name]?.parameters.first, let text = values[name]?.string else {
                continue
            }
            guard let value = text.withRawText({ $0.value(of: property.kind) }) else {
                throw PluginError(
                    .mistypedParameter,
                    "The property “\(name.shortened)” of \(type.name) is declared \(property.kind); the URL has "
                        + "“\(text.shortened)”.")
            }
            converted[name] = value
        }
        return converted
    }
}
