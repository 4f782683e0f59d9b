/// An object type whose objects are pages, which a navigator can show.
///
/// An action of a target makes the page and returns it; the page is opened by calling that action, by name or by URL.
/// The navigator and the presenter call the actions of the page that have the names below. Each of these actions is
/// optional, and there may be others.
///
///     Target("Shop") {
///         Action("article", .context(), .required("key", String.self)) { context, key in
///             try context.object("Article", ArticlePage(key))
///         }
///         .remote()
///     }
///     Page("Article", ArticlePage.self) {
///         Action.property("note", String.self) { page, note in page.note = note }
///         Action.shouldOpen { page, opening in page.isKnown }
///         Action.opened { page, opening in opening.context.log(.info, "opened \(opening.url ?? "")") }
///         Action.content { page in PageContent(page.title, lines: page.lines) }
///         Action.backData { page in page.choice }
///     }
///
/// | made by | name of the action | parameters, each optional | replies with |
/// | --- | --- | --- | --- |
/// | `Action.property` | `set.NAME` | `value` | nothing |
/// | `Action.shouldOpen` | `shouldOpen` | `url`, `parameters` | bool |
/// | `Action.opened` | `opened` | `url`, `parameters` | nothing |
/// | `Action.content` | `content` | | map: `title`, `summary`, `lines` |
/// | `Action.backData` | `backData` | | any value |
///
/// In C, a page is an object type with actions of these names.
public typealias Page<Instance: Sendable> = ObjectType<Instance>

/// The data that a page gets when it is opened.
public struct Opening: Sendable {
    /// The URL by which the page is opened; `nil` if it is opened by target and action.
    public let url: String?
    /// All parameters: from the caller, from the URL, and from the defaults of the route and of the action.
    public let parameters: [String: Value]
    /// The context of the page's action, for calls to other modules.
    public let context: HostContext

    init(_ url: String?, _ parameters: [String: Value]?, _ context: HostContext) {
        (self.url, self.parameters, self.context) = (url, parameters ?? [:], context)
    }
}

extension Action where Instance: Sendable {
    /// Declares a property of a page. The navigator sets it from the parameter of this name before it asks the page
    /// whether to open. Parameters without a property are only in ``Opening/parameters``.
    ///
    /// - Parameters:
    ///   - name: The name of the parameter.
    ///   - type: The type to which the value is converted. If it cannot be converted without loss, opening the page
    ///     fails.
    ///   - set: The closure that sets the value. If it throws, opening the page fails.
    public static func property<Property: ActionParameter>(
        _ name: String, _ type: Property.Type, _ set: @escaping @Sendable (Instance, Property) throws -> Void
    ) -> Action {
        Action("set." + name, .instance(), .required("value", type)) { page, value in try set(page, value) }
    }

    /// Declares the action that decides whether the page opens, before it is shown. If the closure returns false or
    /// throws, the page is not opened, and the opener gets an error.
    public static func shouldOpen(_ body: @escaping @Sendable (Instance, Opening) throws -> Bool) -> Action {
        Action(
            "shouldOpen", .instance(), .context(), .optional("url", String.self),
            .optional("parameters", [String: Value].self)
        ) { page, context, url, parameters in try body(page, Opening(url, parameters, context)) }
    }

    /// Declares the asynchronous action that decides whether the page opens, before it is shown.
    public static func shouldOpen(_ body: @escaping @Sendable (Instance, Opening) async throws -> Bool) -> Action {
        Action(
            "shouldOpen", .instance(), .context(), .optional("url", String.self),
            .optional("parameters", [String: Value].self)
        ) { (page, context, url, parameters) async throws -> Bool in
            try await body(page, Opening(url, parameters, context))
        }
    }

    /// Declares the action that runs when the page is shown. An error is logged; the page stays open.
    public static func opened(_ body: @escaping @Sendable (Instance, Opening) throws -> Void) -> Action {
        Action(
            "opened", .instance(), .context(), .optional("url", String.self),
            .optional("parameters", [String: Value].self)
        ) { page, context, url, parameters in try body(page, Opening(url, parameters, context)) }
    }

    /// Declares the asynchronous action that runs when the page is shown.
    public static func opened(_ body: @escaping @Sendable (Instance, Opening) async throws -> Void) -> Action {
        Action(
            "opened", .instance(), .context(), .optional("url", String.self),
            .optional("parameters", [String: Value].self)
        ) { (page, context, url, parameters) async throws in
            try await body(page, Opening(url, parameters, context))
        }
    }

    /// Declares the action that returns the content of the page. The program's presenter calls it whenever it shows the
    /// page.
    public static func content(_ body: @escaping @Sendable (Instance) throws -> PageContent) -> Action {
        Action("content", .instance()) { page in try body(page) }
    }

    /// Declares the asynchronous action that returns the content of the page.
    public static func content(_ body: @escaping @Sendable (Instance) async throws -> PageContent) -> Action {
        Action("content", .instance()) { page async throws -> PageContent in try await body(page) }
    }

    /// Declares the action that returns the back data: the value that the opener gets when the page is closed.
    public static func backData<Data: ActionResult>(
        _ body: @escaping @Sendable (Instance) throws -> Data
    ) -> Action {
        Action("backData", .instance()) { page in try body(page) }
    }
}

/// The content of a page, for presenters that know nothing else about the page: a terminal, a list in a browser.
public struct PageContent: Sendable, Hashable {
    /// The heading.
    public var title: String
    /// One sentence about the page; may be empty.
    public var summary: String
    /// The text, line by line.
    public var lines: [String]

    /// Makes the content of a page.
    public init(_ title: String, summary: String = "", lines: [String] = []) {
        (self.title, self.summary, self.lines) = (title, summary, lines)
    }
}

/// Converts to and from a map with `title`, `summary` and `lines`, of which the last two may be missing.
extension PageContent: ValueConvertible {
    public static var kind: Value.Kind { .map }

    public init(_ value: Value) throws(PluginError) {
        guard let title = value["title"]?.string, value["summary"].map({ $0.kind == .string }) ?? true else {
            throw PluginError(
                .invalidResult,
                "The content of a page must be a map with “title” (string), “summary” (string) and “lines” (list).")
        }
        self.init(title, summary: value["summary"]?.string ?? "", lines: try value["lines"].map([String].init) ?? [])
    }

    public var value: Value {
        ["title": .string(title), "summary": .string(summary), "lines": .list(lines.map(Value.string))]
    }
}
