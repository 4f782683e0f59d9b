import PluginABI
import PluginFile

/// All routes of a table, and how they were changed at run time.
///
/// A module's route that was removed at run time stays removed as long as the module's current generation serves; if
/// the module is replaced, the routes of the new manifest apply. A route that was updated at run time belongs to the
/// program from then on, and overrides the route of the module or file, even if that route is added again.
struct Routes: Sendable {
    /// Every registered route.
    private(set) var table = RouteTable()
    /// The route files whose routes are not registered, and why.
    private(set) var refused: [PathKey: PluginError] = [:]
    /// The routes of serving generations that were removed at run time.
    private var removed: Set<ObjectIdentifier> = []
    /// The routes declared by route files, by path. Which of them are registered is determined for each table.
    private(set) var files: [PathKey: [RouteEntry]] = [:]

    // MARK: Modules and files

    /// Returns the routes for another set of modules, with the same run-time changes.
    ///
    /// - Parameters:
    ///   - gone: The routes of modules that are no longer among them.
    ///   - new: The routes of modules that were not among them before.
    ///   - change: A change that was made before; used if it is this one.
    func with(
        _ modules: [any RouteOwner], without gone: [RouteEntry], adding new: [RouteEntry], as change: RouteChange?
    ) -> Routes {
        var routes = self
        var (gone, new) = (gone, new)
        // A registered module that is started keeps its routes.
        if !gone.isEmpty, !new.isEmpty {
            let kept = Set(gone.map(ObjectIdentifier.init)).intersection(new.map(ObjectIdentifier.init))
            gone.removeAll { kept.contains(ObjectIdentifier($0)) }
            new.removeAll { kept.contains(ObjectIdentifier($0)) }
        }
        if gone.isEmpty, new.isEmpty { return routes }
        if !removed.isEmpty { routes.removed.subtract(gone.map(ObjectIdentifier.init)) }
        if !files.isEmpty {
            routes.rebuild(modules)
        } else if let change, change.leads(from: table, without: gone, adding: new) {
            routes.table = change.after
        } else {
            // The routes of the others stay as they are and are shared.
            for entry in gone { routes.table.remove(entry) }
            for entry in new where !routes.table.isOverridden(entry) { _ = routes.table.insert(entry, isKnown: true) }
        }
        return routes
    }

    /// Replaces all routes of a file; `nil` removes them.
    mutating func set(_ entries: [RouteEntry]?, ofFile path: String) { files[path] = entries }

    /// Determines from scratch which routes are registered. The routes of the program and of modules come first, then
    /// the files in the order of their names: each file whole or not at all, depending on whether it conflicts with
    /// earlier routes. The result depends only on what is present, never on the order in which it was added.
    mutating func rebuild(_ modules: [any RouteOwner]) {
        var next = declared(modules)
        refused = [:]
        for (path, entries) in files.map({ ($0.key.path, $0.value) }).sorted(by: { $0.0.sortsAsFile(before: $1.0) }) {
            var whole = next
            let conflict = entries.lazy.filter { whole.isOverridden($0) == false }.compactMap { entry in
                whole.insert(entry).map { PluginError.refused(path, entry, $0) }
            }.first
            if let conflict { refused[path] = conflict } else { next = whole }
        }
        table = next
    }

    /// Returns the routes of the program and of modules, which precede those of files.
    func declared(_ modules: [any RouteOwner]) -> RouteTable {
        var table = RouteTable()
        for entry in self.table.all where entry.owner == .program { _ = table.insert(entry, isKnown: true) }
        for entry in modules.lazy.flatMap(\.routes) where !removed.contains(ObjectIdentifier(entry)) {
            if !table.isOverridden(entry) { _ = table.insert(entry, isKnown: true) }
        }
        return table
    }

    // MARK: One at a time

    /// Adds a route. Routes of files give way to it.
    ///
    /// - Throws: `conflict`, naming both sides, if the pattern or the name is already used.
    mutating func add(_ entry: RouteEntry, _ modules: [any RouteOwner]) throws(PluginError) {
        guard let conflict = table.insert(entry) else { return }
        guard conflict.other?.owner.isFile == true else { throw .conflict(entry, conflict) }
        var others = declared(modules)
        if let conflict = others.insert(entry) { throw .conflict(entry, conflict) }
        table = others
        rebuild(modules)
    }

    /// Replaces a route with the program's route of the same pattern.
    ///
    /// - Throws: `conflict` if the name is already used.
    mutating func replace(
        _ old: RouteEntry, with entry: RouteEntry, _ modules: [any RouteOwner]
    ) throws(PluginError) {
        table.remove(old)
        if let conflict = table.insert(entry) { throw .conflict(entry, conflict) }
        if !refused.isEmpty { rebuild(modules) }  // A name may have become free.
    }

    /// Removes a route, whatever its owner.
    mutating func remove(_ entry: RouteEntry, _ modules: [any RouteOwner]) {
        table.remove(entry)
        let (shape, method) = (entry.pattern.shape, entry.pattern.method)
        // The owner of a route that is overridden may have changed the route's method.
        func isMeant(_ pattern: RoutePattern) -> Bool {
            let isOverridden = entry.overridden != nil && (pattern.method == nil || method == nil)
            return (pattern.method == method || isOverridden) && pattern.answering(method).shape == shape
        }
        for owner in [entry.owner, entry.overridden].compactMap(\.self) {
            switch owner {
            case .program: break
            case .file(let path): files[path]?.removeAll { isMeant($0.pattern) }
            case .module(let name):
                for generation in modules where generation.name == name {
                    for own in generation.routes where isMeant(own.pattern) { removed.insert(ObjectIdentifier(own)) }
                }
            }
        }
        if !refused.isEmpty { rebuild(modules) }  // A file may no longer conflict.
    }
}

/// A change of the table of routes that a plan has made in order to find conflicts. Tables that carry out the plan
/// contain the result, so that no route is added twice.
struct RouteChange: Sendable {
    private let before: RouteTable
    private let gone: [RouteEntry]
    private let new: [RouteEntry]
    let after: RouteTable

    /// - Parameters:
    ///   - gone: The routes that were removed, in order.
    ///   - new: The routes that were added then, in order, except those that the program has overridden.
    init(before: RouteTable, without gone: [RouteEntry], adding new: [RouteEntry], after: RouteTable) {
        (self.before, self.gone, self.new, self.after) = (before, gone, new, after)
    }

    /// Returns whether this is a change of this table.
    func begins(with table: RouteTable) -> Bool { table.root === before.root }

    /// Returns whether this change consists in removing and adding these routes.
    func leads(from table: RouteTable, without gone: [RouteEntry], adding new: [RouteEntry]) -> Bool {
        begins(with: table) && gone.elementsEqual(self.gone, by: ===) && new.elementsEqual(self.new, by: ===)
    }
}

extension RouteEntry {
    /// The pattern and its owner, for messages.
    fileprivate var title: String { "“\(pattern.title.shortened)” of \(owner.description.shortened)" }
}

extension RouteTable {
    /// Returns whether the program has overridden this route with one of its own. The route may have another method
    /// than the one that was overridden.
    func isOverridden(_ entry: RouteEntry) -> Bool {
        guard root.overridingCount > 0,
            let other = self.entry(like: entry.pattern) ?? otherMethod(like: entry.pattern)
        else { return false }
        return other.overridden == entry.owner
    }
}

extension String {
    /// Orders two paths by the bytes of the file name, then of the whole path.
    func sortsAsFile(before other: String) -> Bool {
        func name(_ path: String) -> Substring.UTF8View {
            let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
            return path.utf8[(slash.map { path.utf8.index(after: $0) } ?? path.startIndex)...]
        }
        if name(self).lexicographicallyPrecedes(name(other)) { return true }
        return !name(other).lexicographicallyPrecedes(name(self)) && PathKey(self) < PathKey(other)
    }
}

extension PluginError {
    fileprivate static func refused(
        _ path: String, _ entry: RouteEntry, _ conflict: RouteTable.Conflict
    ) -> PluginError {
        let reason =
            switch conflict {
            case .pattern(let other):
                "its “\(entry.pattern.title.shortened)” matches the same URLs as \(other.title), which keeps them."
            case .name(let other):
                "its route name “\((entry.name ?? "").shortened)” belongs to \(other.title), which keeps it."
            case .work(let steps, let other):
                "with its “\(entry.pattern.title.shortened)”, \(PluginError.tooMuchWork(steps, other))"
            }
        return PluginError(.conflict, "The routes of \(path) are not registered: \(reason)")
    }

    static func conflict(_ entry: RouteEntry, _ conflict: RouteTable.Conflict) -> PluginError {
        let message =
            switch conflict {
            case .pattern(let other):
                "The route \(entry.title) matches the same URLs as \(other.title), which keeps them."
            case .name(let other):
                "The route name “\((entry.name ?? "").shortened)” belongs to \(other.title), which keeps it."
            case .work(let steps, let other):
                "The route \(entry.title) is not registered: with it, \(tooMuchWork(steps, other))"
            }
        return PluginError(.conflict, message)
    }

    fileprivate static func tooMuchWork(_ steps: Int, _ other: RouteEntry?) -> String {
        "finding the route of one URL could take \(steps) steps, and at most \(SearchWork.most) are allowed. "
            + (other.map { "The URL may also have to be compared with other routes, among them \($0.title). " } ?? "")
            + "Put a literal segment before its “*” or “(…)”, use fewer repetitions in its expressions, or register "
            + "fewer such routes for one host."
    }
}
