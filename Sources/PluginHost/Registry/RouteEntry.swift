import PluginABI

/// One route as the registry has it.
final class RouteEntry: Sendable {
    let pattern: RoutePattern
    let target: String
    let action: String
    /// What `url(for:)` may call it by.
    let name: String?
    let summary: String
    /// Values for parameters that neither the caller nor the URL gives.
    let defaults: [String: Value]
    let owner: Owner

    /// Where a route comes from.
    enum Owner: Hashable, Sendable {
        case module(String)
        case file(String)
        case program

        var description: String {
            switch self {
            case .module(let name): "module \(name)"
            case .file(let path): "the file \(path)"
            case .program: "the program"
            }
        }
    }

    init(
        _ pattern: RoutePattern, target: String, action: String, name: String?, summary: String,
        defaults: [String: Value], owner: Owner
    ) {
        self.pattern = pattern
        self.target = target
        self.action = action
        self.name = name
        self.summary = summary
        self.defaults = defaults
        self.owner = owner
    }

    convenience init(_ route: ModuleManifest.Route, of module: String) {
        self.init(
            route.pattern, target: route.target, action: route.action, name: route.name, summary: route.summary,
            defaults: route.defaults, owner: .module(module))
    }
}

/// All routes of a table: those of its modules that nobody has removed, and those of files and of the program.
struct Routes: Sendable {
    private(set) var added: [RouteEntry] = []
    /// Routes of modules that were removed at run time.
    private(set) var removed: Set<RoutePattern.Shape> = []

    /// - Throws: `conflict`, naming both sides, when the pattern is taken by one of `existing`.
    mutating func add(_ entry: RouteEntry, besides existing: [RouteEntry]) throws(PluginError) {
        if let other = existing.first(where: { $0.pattern.shape == entry.pattern.shape }) {
            throw .conflict(entry, other)
        }
        if let name = entry.name, let other = existing.first(where: { $0.name == name }) {
            throw PluginError(
                .conflict,
                "The route name “\(name)” belongs to “\(other.pattern.text)” of \(other.owner.description), which keeps it."
            )
        }
        added.append(entry)
    }

    /// Takes a route away, wherever it comes from.
    mutating func remove(_ entry: RouteEntry) {
        if case .module = entry.owner {
            removed.insert(entry.pattern.shape)
        } else {
            added.removeAll { $0 === entry }
        }
    }

    /// Replaces all routes of a file.
    mutating func set(_ entries: [RouteEntry], ofFile path: String) {
        added.removeAll { $0.owner == .file(path) }
        added += entries
    }

    /// Forgets what was removed of a module that comes anew.
    mutating func restore(_ entries: [RouteEntry]) {
        removed.subtract(entries.map(\.pattern.shape))
    }

    func all(with modules: [Generation]) -> [RouteEntry] {
        modules.flatMap { $0.routes.filter { !removed.contains($0.pattern.shape) } } + added
    }
}

extension PluginError {
    static func conflict(_ entry: RouteEntry, _ other: RouteEntry) -> PluginError {
        PluginError(
            .conflict,
            "The route “\(entry.pattern.text)” of \(entry.owner.description) matches the same URLs as "
                + "“\(other.pattern.text)” of \(other.owner.description), which keeps them.")
    }
}
