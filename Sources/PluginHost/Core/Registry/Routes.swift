import PluginABI
import PluginFile

/// All routes of a table, and what was changed of them at run time.
///
/// A route of a module that was removed stays removed as long as the generation whose it is serves: who replaces the
/// module gets what its manifest says. A route that was updated is the program's from then on, and stands in the place
/// of the module's or the file's own, also when that comes anew.
struct Routes: Sendable {
    /// Every route that stands.
    private(set) var table = RouteTable()
    /// The route files whose routes do not stand, and why.
    private(set) var refused: [PathKey: PluginError] = [:]
    /// Routes of generations that serve, removed at run time.
    private var removed: Set<ObjectIdentifier> = []
    /// What route files say, by path; which of them stand is found out for each table.
    private(set) var files: [PathKey: [RouteEntry]] = [:]

    // MARK: Modules and files

    /// The same changes with other modules.
    func with(_ modules: [Generation], insteadOf before: [Generation]) -> Routes {
        var routes = self
        let (past, present) = (Set(before.map(ObjectIdentifier.init)), Set(modules.map(ObjectIdentifier.init)))
        let gone = before.filter { !present.contains(ObjectIdentifier($0)) }.flatMap(\.routes)
        let new = modules.filter { !past.contains(ObjectIdentifier($0)) }.flatMap(\.routes)
        if gone.isEmpty, new.isEmpty { return routes }
        if !removed.isEmpty { routes.removed.subtract(gone.map(ObjectIdentifier.init)) }
        if files.isEmpty {
            // What others have stays as it is, and is shared.
            for entry in gone { routes.table.remove(entry) }
            for entry in new where !routes.table.isOverridden(entry) { _ = routes.table.insert(entry, isKnown: true) }
        } else {
            routes.rebuild(modules)
        }
        return routes
    }

    /// Replaces all routes of a file; nil takes the file away.
    mutating func set(_ entries: [RouteEntry]?, ofFile path: String) { files[path] = entries }

    /// Finds out anew what stands: what the program and the modules say, then the files, each whole or not at all: in
    /// order of their names, each one that claims nothing that is taken. So what stands depends on what is there, never
    /// on the order in which it came.
    mutating func rebuild(_ modules: [Generation]) {
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

    /// The routes of the program and of modules, which stand before those of files.
    func declared(_ modules: [Generation]) -> RouteTable {
        var table = RouteTable()
        for entry in self.table.all where entry.owner == .program { _ = table.insert(entry, isKnown: true) }
        for entry in modules.lazy.flatMap(\.routes) where !removed.contains(ObjectIdentifier(entry)) {
            if !table.isOverridden(entry) { _ = table.insert(entry, isKnown: true) }
        }
        return table
    }

    // MARK: One at a time

    /// - Throws: `conflict`, naming both sides, when the pattern or the name is taken. Files step back.
    mutating func add(_ entry: RouteEntry, _ modules: [Generation]) throws(PluginError) {
        guard let conflict = table.insert(entry) else { return }
        guard conflict.other?.owner.isFile == true else { throw .conflict(entry, conflict) }
        var others = declared(modules)
        if let conflict = others.insert(entry) { throw .conflict(entry, conflict) }
        table = others
        rebuild(modules)
    }

    /// Puts a route of the program in the place of another one of its pattern.
    ///
    /// - Throws: `conflict` when the name is taken.
    mutating func replace(
        _ old: RouteEntry, with entry: RouteEntry, _ modules: [Generation]
    ) throws(PluginError) {
        table.remove(old)
        if let conflict = table.insert(entry) { throw .conflict(entry, conflict) }
        if !refused.isEmpty { rebuild(modules) }  // A name may be free again.
    }

    /// Takes a route away, wherever it comes from.
    mutating func remove(_ entry: RouteEntry, _ modules: [Generation]) {
        table.remove(entry)
        for owner in [entry.owner, entry.overridden].compactMap(\.self) {
            let shape = entry.pattern.shape
            switch owner {
            case .program: break
            case .file(let path): files[path]?.removeAll { $0.pattern.shape == shape }
            case .module(let name):
                for generation in modules where generation.name == name {
                    let own = generation.routes.first { $0.pattern.shape == shape }
                    if let own { removed.insert(ObjectIdentifier(own)) }
                }
            }
        }
        if !refused.isEmpty { rebuild(modules) }  // A file may stand again.
    }
}

extension RouteEntry {
    /// The pattern and where it comes from, for messages.
    fileprivate var title: String { "“\(pattern.text.shortened)” of \(owner.description)" }
}

extension RouteTable {
    /// Whether the program has put a route of its own in the place of this one.
    func isOverridden(_ entry: RouteEntry) -> Bool {
        guard let other = self.entry(like: entry.pattern) else { return false }
        return other.overridden == entry.owner
    }
}

extension String {
    /// Of two paths: by the bytes of the file's name, then of the whole.
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
                "its “\(entry.pattern.text.shortened)” matches the same URLs as \(other.title), which keeps them."
            case .name(let other):
                "its route name “\(entry.name ?? "")” belongs to \(other.title), which keeps it."
            case .work(let steps, let other):
                "with its “\(entry.pattern.text.shortened)” \(PluginError.tooMuchWork(steps, other))"
            }
        return PluginError(.conflict, "The routes of \(path) are not registered: \(reason)")
    }
}

extension PluginError {
    static func conflict(_ entry: RouteEntry, _ conflict: RouteTable.Conflict) -> PluginError {
        let message =
            switch conflict {
            case .pattern(let other):
                "The route \(entry.title) matches the same URLs as \(other.title), which keeps them."
            case .name(let other):
                "The route name “\(entry.name ?? "")” belongs to \(other.title), which keeps it."
            case .work(let steps, let other):
                "The route \(entry.title) is not registered: with it \(tooMuchWork(steps, other))"
            }
        return PluginError(.conflict, message)
    }

    fileprivate static func tooMuchWork(_ steps: Int, _ other: RouteEntry?) -> String {
        "finding the route of one URL could take \(steps) steps, and \(SearchWork.most) are allowed. "
            + (other.map { "The URL may also have to be compared with others, among them \($0.title). " } ?? "")
            + "Put a literal segment before its “*” or “(…)”, repeat less in its expressions, or register fewer such "
            + "routes for one host."
    }
}
