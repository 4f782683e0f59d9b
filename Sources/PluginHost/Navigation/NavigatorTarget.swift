public import PluginABI

extension Navigator {
    /// Lets modules in any language navigate: registers the navigator with the host as a target that they call.
    ///
    ///     try await context.call("navigator", "push", ["url": "app://shop/article/lamp"])
    ///
    /// | action | parameters | result |
    /// | --- | --- | --- |
    /// | `push`, `present`, `presentInNewStack` | what to open | the page |
    /// | `open` | what to open; `transition` (default: `push`) | the page |
    /// | `pop`, `dismiss` | `count` (default: 1) | the number of closed pages |
    /// | `popToRoot` | | the number of closed pages |
    /// | `popTo`, `close` | `page` | the number of closed pages |
    /// | `layers` | | a list of layers: `isStack`, and `pages` with `page`, `type`, `module`, `url` |
    ///
    /// The page to open is given by `url`, by `target` and `action`, or by `page` for a page that the opener holds,
    /// with `parameters` (a map). An opener that wants the back data also passes `completion`, a callback that is
    /// called once: with the back data, or with null and an error (a map with `code`, `message` and, if a module
    /// failed, `source`). All actions except `layers` are asynchronous. None is remote: the program decides what other
    /// programs may open, and passes their URLs to ``open(_:_:by:origin:onClose:)``.
    ///
    /// - Parameter name: The name of the target and of its module. The target exists until `host.unregister(name)`, and
    ///   does not keep the navigator alive.
    /// - Throws: The errors of ``PluginHost/PluginHost/register(_:)-(Manifest)``.
    public func register(as name: String = "navigator") throws(PluginError) {
        let navigator = WeakNavigator(self)
        try host.register(
            Manifest(name, version: "1.0.0") {
                Target(name) {
                    navigator.action(opening: .push)
                    navigator.action(opening: .present)
                    navigator.action(opening: .presentInNewStack)
                    Action(
                        "open", .context(), .optional("url", String.self), .optional("target", String.self),
                        .optional("action", String.self), .optional("parameters", [String: Value].self, default: [:]),
                        .optional("completion", Callback.self),
                        .optional("transition", Transition.self, default: .push), .optional("page", Object.self)
                    ) { context, url, target, action, parameters, completion, transition, page in
                        let address = try PageAddress(url, target, action, page)
                        return try await navigator.open(address, parameters, by: transition, completion, in: context)
                    }
                    Action("pop", .optional("count", Int.self, default: 1)) { count in
                        try await navigator.get().pop(count).count
                    }
                    Action("dismiss", .optional("count", Int.self, default: 1)) { count in
                        try await navigator.get().dismiss(count).count
                    }
                    Action("popToRoot") { () async throws -> Int in try await navigator.get().popToRoot().count }
                    Action("popTo", .required("page", Object.self)) { page in
                        try await navigator.get().popTo(page).count
                    }
                    Action("close", .required("page", Object.self)) { page in
                        try await navigator.get().close(page).count
                    }
                    Action("layers") { try navigator.get().layers.map(\.value) }
                }
                .summary("Opens and closes pages")
            })
    }
}

/// A weak reference to the navigator, for its target.
private final class WeakNavigator: Sendable {
    private weak let navigator: Navigator?

    init(_ navigator: Navigator) { self.navigator = navigator }

    func get() throws(PluginError) -> Navigator {
        guard let navigator else {
            throw PluginError(
                .unknownTarget, "The program has released its navigator: pages can no longer be opened or closed.")
        }
        return navigator
    }

    /// Returns the action that is named like a transition.
    func action(opening transition: Transition) -> Action<Never> {
        Action(
            transition.rawValue, .context(), .optional("url", String.self), .optional("target", String.self),
            .optional("action", String.self), .optional("parameters", [String: Value].self, default: [:]),
            .optional("completion", Callback.self), .optional("page", Object.self)
        ) { context, url, target, action, parameters, completion, page in
            let address = try PageAddress(url, target, action, page)
            return try await self.open(address, parameters, by: transition, completion, in: context)
        }
    }

    func open(
        _ address: PageAddress, _ parameters: [String: Value], by transition: Transition, _ completion: Callback?,
        in context: HostContext
    ) async throws(PluginError) -> Object {
        let navigator = try get()
        let onClose = completion.map { completion -> Navigator.Completion in
            { await navigator.tell($0, to: completion) }
        }
        // The host calls the action that makes the page, on behalf of the module's call.
        let program = HostContext(host: navigator.host.calls.program.hostTable, call: context.call)
        return try await navigator.open(address, parameters, by: transition, in: program, onClose: onClose).object
    }
}

extension Navigator {
    fileprivate func tell(_ backData: Result<Value, PluginError>, to completion: Callback) async {
        do throws(PluginError) {
            switch backData {
            case .success(let value): try await completion(value)
            case .failure(let error):
                try await completion(.null, error.record)
            }
        } catch {
            host.configuration.log(
                LogEntry(
                    level: .error, module: error.source,
                    message: "A page was closed, but its completion failed: \(error.message) (\(error.code))"))
        }
    }
}

extension PageAddress {
    /// - Throws: `missingParameter` unless exactly one of a URL, a target with an action, and a page is given.
    fileprivate init(_ url: String?, _ target: String?, _ action: String?, _ page: Object?) throws(PluginError) {
        switch (url, target, action, page) {
        case (let url?, nil, nil, nil): self = .url(url, .local)
        case (nil, let target?, let action?, nil): self = .action(target, action)
        case (nil, nil, nil, let page?): self = .page(page)
        default:
            throw PluginError(
                .missingParameter, "Pass “url”, or “target” and “action”, or “page”, to say what to open.")
        }
    }
}

extension PageLayer {
    /// The layer as modules get it.
    fileprivate var value: Value {
        [
            "isStack": .bool(isStack),
            "pages": .list(
                pages.map { page in
                    [
                        "page": .object(page.object), "type": .string(page.type), "module": .string(page.module),
                        "url": page.url.map(Value.string) ?? .null,
                    ]
                }),
        ]
    }
}
