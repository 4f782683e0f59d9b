public import PluginABI

/// A page that a navigator has opened: an object of a module, and how it was opened.
///
/// The page retains the object, and with it the generation of the module that made it: a page that is shown keeps
/// working when its module is replaced or removed. If ``PluginHost/HostConfiguration/objectTimeout`` is set, actions of
/// the page end with `generationRetired` after that time, but the page can still be closed.
public struct OpenPage: Sendable {
    /// The object behind the page. All its actions can be performed.
    public let object: Object
    /// The object's type, as the module's manifest names it.
    public let type: String
    /// The name of the module that made the page.
    public let module: String
    /// The version of ``module`` that made the page.
    public let version: String
    /// The URL that opened the page; `nil` if it was opened by target and action.
    public let url: String?
    /// All parameters: those of the caller, those in the URL, and the defaults of the route and of the action. Those that
    /// the page lists as properties were injected into it.
    public let parameters: [String: Value]
    /// The transition with which the page was opened.
    public let transition: Transition
    let onClose: Navigator.Completion?
    /// The type, with its actions.
    let entry: ObjectTypeEntry

    /// Returns the content of the page. For a page without the action `content`, the title is its type.
    ///
    /// - Throws: The error of the page; `generationRetired`; `invalidResult` if the page returns anything else.
    public func content() async throws(PluginError) -> PageContent {
        guard declares("content") else { return PageContent(type) }
        return try PageContent(await object.call("content"))
    }

    /// Returns whether the page's type has an action of this name.
    func declares(_ action: String) -> Bool { entry.actions[action] != nil }

    /// Calls an action with those of `values` that it declares as parameters.
    func call(
        _ action: String, _ values: [String: Value], in context: HostContext
    ) async throws(PluginError) -> Value {
        let declared = entry.actions[action]?.parameters.map(\.name) ?? []
        let given = values.filter { !$0.value.isNull && declared.contains($0.key) }
        return try await object.call(action, Parameters(given), in: context)
    }
}

extension OpenPage: Equatable {
    /// Returns whether two pages are the same object.
    public static func == (left: OpenPage, right: OpenPage) -> Bool { left.object == right.object }
}

/// A layer of pages, in front of the layers that were opened before it.
public struct PageLayer: Sendable, Equatable {
    /// Whether pages can be pushed onto the layer. If not, it has one page.
    public let isStack: Bool
    /// The pages, bottom first; the last one is visible. Never empty.
    public internal(set) var pages: [OpenPage]
}
