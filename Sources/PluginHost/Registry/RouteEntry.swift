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

    /// - Parameter action: Written `target/action`.
    /// - Throws: `unknownAction` if it is not.
    convenience init(
        _ pattern: RoutePattern, to action: String, name: String?, summary: String, defaults: [String: Value],
        owner: Owner
    ) throws(PluginError) {
        let parts = action.split(separator: "/", maxSplits: 1).map(String.init)
        guard parts.count == 2 else {
            throw PluginError(
                .unknownAction, "A route leads to an action, written target/action, not “\(action.shortened)”.")
        }
        self.init(
            pattern, target: parts[0], action: parts[1], name: name, summary: summary, defaults: defaults, owner: owner)
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
    /// What route files say, by path; which of them stand is found out for each table.
    private(set) var files: [String: [RouteEntry]] = [:]

    /// - Throws: `conflict`, naming both sides, when the pattern is taken by one of `existing`. Routes of files step
    ///   back.
    mutating func add(_ entry: RouteEntry, besides existing: [RouteEntry]) throws(PluginError) {
        let existing = existing.filter { !$0.owner.isFile }
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
        switch entry.owner {
        case .module: removed.insert(entry.pattern.shape)
        case .file(let path): files[path]?.removeAll { $0 === entry }
        case .program: added.removeAll { $0 === entry }
        }
    }

    /// Replaces all routes of a file; nil takes the file away.
    mutating func set(_ entries: [RouteEntry]?, ofFile path: String) { files[path] = entries }

    /// The routes of modules and of the program, which stand before those of files.
    func declared(with modules: [Generation]) -> [RouteEntry] {
        modules.flatMap { $0.routes.filter { !removed.contains($0.pattern.shape) } } + added
    }

    /// Every route that stands, and why a file's do not.
    ///
    /// A file is registered whole or not at all: in order of their names, each one that claims nothing that is taken.
    /// So what stands depends on what is there, never on the order in which it came.
    func standing(with modules: [Generation]) -> (routes: [RouteEntry], refused: [String: PluginError]) {
        var routes = declared(with: modules)
        guard !files.isEmpty else { return (routes, [:]) }
        var refused: [String: PluginError] = [:]
        var shapes = Dictionary(routes.map { ($0.pattern.shape, $0) }, uniquingKeysWith: { first, _ in first })
        var names = Dictionary(
            routes.compactMap { route in route.name.map { ($0, route) } }, uniquingKeysWith: { first, _ in first })
        for (path, entries) in files.sorted(by: { Self.sortsBefore($0.key, $1.key) }) {
            let conflict = entries.lazy.compactMap { entry -> PluginError? in
                if let other = shapes[entry.pattern.shape] { return .refused(path, entry, other) }
                if let name = entry.name, let other = names[name] { return .refused(path, name, other) }
                return nil
            }.first
            if let conflict {
                refused[path] = conflict
                continue
            }
            routes += entries
            for entry in entries {
                shapes[entry.pattern.shape] = entry
                if let name = entry.name { names[name] = entry }
            }
        }
        return (routes, refused)
    }

    /// By the name of the file, then by its folder.
    private static func sortsBefore(_ left: String, _ right: String) -> Bool {
        func key(_ path: String) -> (Substring, String) { (path[path.index(afterLast: "/")...], path) }
        return key(left) < key(right)
    }
}

extension String {
    fileprivate func index(afterLast character: Character) -> Index {
        lastIndex(of: character).map { index(after: $0) } ?? startIndex
    }
}

extension RouteEntry.Owner {
    var isFile: Bool { if case .file = self { true } else { false } }
}

extension PluginError {
    fileprivate static func refused(_ path: String, _ entry: RouteEntry, _ other: RouteEntry) -> PluginError {
        PluginError(
            .conflict,
            "The routes of \(path) are not registered: its “\(entry.pattern.text)” matches the same URLs as "
                + "“\(other.pattern.text)” of \(other.owner.description), which keeps them.")
    }

    fileprivate static func refused(_ path: String, _ name: String, _ other: RouteEntry) -> PluginError {
        PluginError(
            .conflict,
            "The routes of \(path) are not registered: its route name “\(name)” belongs to “\(other.pattern.text)” of "
                + "\(other.owner.description), which keeps it.")
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
