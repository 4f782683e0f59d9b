public import PluginABI

/// A page that a navigator has opened: an object of a module, and what it was opened with.
///
/// It keeps the object, and with it the copy of the module that made it: a page that is shown goes on working when its
/// module is replaced or removed. Where ``PluginHost/HostConfiguration/objectTimeout`` is set, its actions end with
/// `generationRetired` after that time, and it can still be closed.
public struct OpenPage: Sendable {
    /// The object behind it; any of its actions can be performed.
    public let object: Object
    /// Its type, in the manifest of the module.
    public let type: String
    /// The module that made it, and its version then.
    public let module: String
    /// See ``module``.
    public let version: String
    /// The URL by which it was opened; nil where it was opened by target and action.
    public let url: String?
    /// All that was given: by the caller, in the URL, as defaults of the route and of the action. What the page lists as
    /// properties was injected; everything can be read here.
    public let parameters: [String: Value]
    /// By what it was opened.
    public let transition: Transition
    let onClose: Navigator.Completion?
    /// The type, with its actions.
    let entry: ObjectTypeEntry

    /// What there is to see; a page that does not say has its type for a title.
    ///
    /// - Throws: What the page throws; `generationRetired`; `invalidResult` for something else than content.
    public func content() async throws(PluginError) -> PageContent {
        guard declares("content") else { return PageContent(type) }
        return try PageContent(await object.call("content"))
    }

    /// Whether its type has an action of this name.
    func declares(_ action: String) -> Bool { entry.actions[action] != nil }

    /// Calls an action with those of the values that it declares.
    func call(
        _ action: String, _ values: [String: Value], in context: HostContext
    ) async throws(PluginError) -> Value {
        let declared = entry.actions[action]?.parameters.map(\.name) ?? []
        let given = values.filter { !$0.value.isNull && declared.contains($0.key) }
        return try await object.call(action, Parameters(given), in: context)
    }
}

extension OpenPage: Equatable {
    /// Whether it is the same page: the same object.
    public static func == (left: OpenPage, right: OpenPage) -> Bool { left.object == right.object }
}

/// Pages that stand in front of everything that was there before.
public struct PageLayer: Sendable, Equatable {
    /// Whether pages can be pushed onto it; else it has one page.
    public let isStack: Bool
    /// The first one at the beginning, the one that is seen at the end. Never empty.
    public internal(set) var pages: [OpenPage]
}
