/// A type of object that a navigator can show: a page.
///
/// An action of a target makes the page and returns it; whoever opens it calls that action, by name or by URL. What the
/// page can be asked for are actions of its type with names that are agreed on. Each may be left out, and there may be
/// others.
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
/// A page in C declares actions of these names for an object type.
public typealias Page<Instance: Sendable> = ObjectType<Instance>

/// What a page is told when it is opened.
public struct Opening: Sendable {
    /// The URL by which it is opened; nil where it is opened by target and action.
    public let url: String?
    /// All that was given: by the caller, in the URL, as defaults of the route and of the action.
    public let parameters: [String: Value]
    /// The host, for calls that are made for this one.
    public let context: HostContext

    init(_ url: String?, _ parameters: [String: Value]?, _ context: HostContext) {
        (self.url, self.parameters, self.context) = (url, parameters ?? [:], context)
    }
}

extension Action where Instance: Sendable {
    /// A property of a page: it is set from the parameter of this name before the page is asked whether it should open.
    /// Parameters that are no properties are not injected; ``Opening/parameters`` has them all.
    ///
    /// - Parameters:
    ///   - name: That of the parameter.
    ///   - type: What it is converted to where nothing is lost. A value of another type ends the opening with an error.
    ///   - set: Takes the value. What it throws ends the opening.
    public static func property<Property: ActionParameter>(
        _ name: String, _ type: Property.Type, _ set: @escaping @Sendable (Instance, Property) throws -> Void
    ) -> Action {
        Action("set." + name, .instance(), .required("value", type)) { page, value in try set(page, value) }
    }

    /// Asked before the page is shown. When it says no, or throws, the page is not opened, and the opener gets an error.
    public static func shouldOpen(_ body: @escaping @Sendable (Instance, Opening) throws -> Bool) -> Action {
        Action(
            "shouldOpen", .instance(), .context(), .optional("url", String.self),
            .optional("parameters", [String: Value].self)
        ) { page, context, url, parameters in try body(page, Opening(url, parameters, context)) }
    }

    /// Asked before the page is shown, asynchronously.
    public static func shouldOpen(_ body: @escaping @Sendable (Instance, Opening) async throws -> Bool) -> Action {
        Action(
            "shouldOpen", .instance(), .context(), .optional("url", String.self),
            .optional("parameters", [String: Value].self)
        ) { (page, context, url, parameters) async throws -> Bool in
            try await body(page, Opening(url, parameters, context))
        }
    }

    /// Told when the page is shown. What it throws is logged; the page stays open.
    public static func opened(_ body: @escaping @Sendable (Instance, Opening) throws -> Void) -> Action {
        Action(
            "opened", .instance(), .context(), .optional("url", String.self),
            .optional("parameters", [String: Value].self)
        ) { page, context, url, parameters in try body(page, Opening(url, parameters, context)) }
    }

    /// Told when the page is shown, asynchronously.
    public static func opened(_ body: @escaping @Sendable (Instance, Opening) async throws -> Void) -> Action {
        Action(
            "opened", .instance(), .context(), .optional("url", String.self),
            .optional("parameters", [String: Value].self)
        ) { (page, context, url, parameters) async throws in
            try await body(page, Opening(url, parameters, context))
        }
    }

    /// What there is to see. The program's presenter asks for it whenever it shows the page.
    public static func content(_ body: @escaping @Sendable (Instance) throws -> PageContent) -> Action {
        Action("content", .instance()) { page in try body(page) }
    }

    /// What there is to see, asynchronously.
    public static func content(_ body: @escaping @Sendable (Instance) async throws -> PageContent) -> Action {
        Action("content", .instance()) { page async throws -> PageContent in try await body(page) }
    }

    /// What the opener gets when the page is closed.
    public static func backData<Data: ActionResult>(
        _ body: @escaping @Sendable (Instance) throws -> Data
    ) -> Action {
        Action("backData", .instance()) { page in try body(page) }
    }
}

/// What there is to see of a page, for presenters that know nothing of it: a terminal, a list in a browser.
public struct PageContent: Sendable, Hashable {
    /// What stands above it.
    public var title: String
    /// One sentence about it; may be empty.
    public var summary: String
    /// What it says, line by line.
    public var lines: [String]

    /// Makes the content of a page.
    public init(_ title: String, summary: String = "", lines: [String] = []) {
        self.title = title
        self.summary = summary
        self.lines = lines
    }
}

/// A map with `title`, `summary` and `lines`, of which the last two may be missing.
extension PageContent: ValueConvertible {
    public static var kind: Value.Kind { .map }

    public init(_ value: Value) throws(PluginError) {
        guard let title = value["title"]?.string, value["summary"].map({ $0.kind == .string }) ?? true else {
            throw PluginError(
                .invalidResult,
                "The content of a page is a map with “title” (string), “summary” (string) and “lines” (list).")
        }
        self.init(title, summary: value["summary"]?.string ?? "", lines: try value["lines"].map([String].init) ?? [])
    }

    public var value: Value {
        ["title": .string(title), "summary": .string(summary), "lines": .list(lines.map(Value.string))]
    }
}
