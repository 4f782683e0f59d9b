import PluginABI

/// All routes, immutable, by scheme, host and path. Where several match, the most specific one wins, whatever the order
/// of registration.
struct RouteTable<Route: Sendable>: Sendable {
    private var schemes: [String: Hosts] = [:]
    private var anyScheme = Hosts()
    private var fallbacks: [String: Entry] = [:]

    struct Entry: Sendable {
        let pattern: RoutePattern
        let route: Route
    }

    private struct Hosts: Sendable {
        var literal: [String: PathTree<Entry>] = [:]
        /// In order of their text.
        var patterns: [(PathPattern, PathTree<Entry>)] = []
        var any = PathTree<Entry>()

        mutating func insert(_ entry: Entry, _ host: PathPattern?, _ path: PathPattern) {
            guard let host else { return any.insert(path, entry) }
            if let literal = host.literal {
                literal.isEmpty
                    ? any.insert(path, entry) : self.literal[literal, default: PathTree()].insert(path, entry)
            } else if let place = patterns.firstIndex(where: { $0.0.text == host.text }) {
                patterns[place].1.insert(path, entry)
            } else {
                var tree = PathTree<Entry>()
                tree.insert(path, entry)
                patterns.append((host, tree))
            }
        }

        mutating func finish() {
            patterns.sort { $0.0.text < $1.0.text }
            any.finish()
            for host in literal.keys { literal[host]!.finish() }
            for index in patterns.indices { patterns[index].1.finish() }
        }

        func match(_ url: URLText) -> Match? {
            if let host = url.host {
                if let found = literal[host]?.match(url.path) { return .init(entry: found.0, values: found.1) }
                if !patterns.isEmpty {
                    let scalars = host.unicodeScalars.map(\.value)
                    for (pattern, tree) in patterns {
                        guard let taken = pattern.match(scalars), let found = tree.match(url.path) else { continue }
                        let values = found.1.merging(taken.compactMapValues(\.self)) { path, _ in path }
                        return .init(entry: found.0, values: values)
                    }
                }
            }
            return any.match(url.path).map { .init(entry: $0.0, values: $0.1) }
        }
    }

    /// What a URL leads to.
    struct Match {
        let entry: Entry
        /// What the groups of the pattern have taken.
        let values: [String: String]
    }

    init(_ routes: [(RoutePattern, Route)]) {
        for (pattern, route) in routes { insert(Entry(pattern: pattern, route: route)) }
        anyScheme.finish()
        for scheme in schemes.keys { schemes[scheme]!.finish() }
    }

    private mutating func insert(_ entry: Entry) {
        let pattern = entry.pattern
        guard let path = pattern.path else {
            if let scheme = pattern.scheme { fallbacks[scheme] = entry }
            return
        }
        if let scheme = pattern.scheme {
            schemes[scheme, default: Hosts()].insert(entry, pattern.host, path)
        } else {
            anyScheme.insert(entry, pattern.host, path)
        }
    }

    /// The most specific route that matches, without the fallbacks; nil if there is none.
    func match(_ url: URLText) -> Match? {
        if let scheme = url.scheme, let found = schemes[scheme]?.match(url) { return found }
        return anyScheme.match(url)
    }

    /// The fallback of the URL's scheme.
    func fallback(_ url: URLText) -> Match? {
        url.scheme.flatMap { fallbacks[$0] }.map { Match(entry: $0, values: [:]) }
    }
}

extension PathPattern {
    /// The text, if there are no groups.
    var literal: String? {
        if parts.isEmpty { return "" }
        guard parts.count == 1, case .literal(let scalars) = parts[0].matcher, parts[0].modifier == .once else {
            return nil
        }
        return PathScalars.text(scalars)
    }
}
