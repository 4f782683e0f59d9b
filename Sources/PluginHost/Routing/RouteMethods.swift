import PluginABI

// Routes for one HTTP method. A route for GET, or for every method, is in the table itself; a route for another method
// is in the table for that method.

extension RoutePattern {
    /// The method whose table has the route; `nil` for the table itself.
    var separateMethod: RouteMethod? { method == .get ? nil : method }

    /// Whether a route with this pattern answers a method.
    func answers(_ asked: RouteMethod) -> Bool { method == nil || method == asked }

    /// The pattern, with the method in front if there is one.
    var title: String { (method.map { "\($0.rawValue) " } ?? "") + text }
}

extension RouteTable {
    /// Returns the route with the same pattern, in the table of another method, that conflicts with a new route because
    /// one of the two is for every method.
    func otherMethod(like pattern: RoutePattern) -> RouteEntry? {
        switch pattern.method {
        case nil where root.others.isEmpty: nil
        case nil: RouteMethod.allCases.lazy.compactMap { root.others[$0]?.own(like: pattern) }.first
        case .get: nil
        default: own(like: pattern).flatMap { $0.pattern.method == nil ? $0 : nil }
        }
    }

    /// Returns the most specific route that answers a method and matches, ignoring fallbacks. Of two that are equally
    /// specific, the one that answers no other method wins.
    ///
    /// - Parameters:
    ///   - steps: Increased by the number of steps taken: at most ``mostSteps``.
    ///   - isWanted: As for ``match(_:counting:where:)``.
    func match(
        _ url: URLText, _ method: RouteMethod, counting steps: inout Int, where isWanted: (RouteEntry) -> Bool
    ) -> RouteMatch? {
        if method == .get { return match(url, counting: &steps, where: isWanted) }
        let shared = match(url, counting: &steps) { $0.pattern.method == nil && isWanted($0) }
        guard let own = root.others[method]?.match(url, counting: &steps, where: isWanted) else { return shared }
        guard let shared else { return own }
        let (ownPattern, sharedPattern) = (
            own.entry.takeUnretainedValue().pattern, shared.entry.takeUnretainedValue().pattern
        )
        return sharedPattern.isMoreSpecific(than: ownPattern, for: url) ? shared : own
    }

    /// Returns the most specific route that answers a method and matches; see ``match(_:)``.
    @inline(never)
    func match(_ url: URLText, _ method: RouteMethod) -> RouteMatch? {
        var steps = 0
        return match(url, method, counting: &steps) { _ in true }
    }

    /// Returns the fallback of the URL's scheme for a method.
    func fallback(_ url: URLText, _ method: RouteMethod) -> RouteMatch? {
        if method != .get, let own = root.others[method]?.fallback(url) { return own }
        return fallback(url).flatMap { $0.entry.takeUnretainedValue().pattern.answers(method) ? $0 : nil }
    }

    /// Returns the methods for which a route, or a fallback, matches.
    ///
    /// - Parameters:
    ///   - missing: A method for which none matches; `nil` if that is not known.
    ///   - isWanted: Decides which routes count.
    func methods(
        of url: URLText, besides missing: RouteMethod? = nil, where isWanted: (RouteEntry) -> Bool
    ) -> [RouteMethod] {
        var steps = 0
        return methods(of: url, besides: missing, counting: &steps, where: isWanted)
    }

    /// Returns the methods for which a route, or a fallback, matches.
    ///
    /// - Parameter steps: Increased by the number of steps taken: at most ``mostSteps``.
    func methods(
        of url: URLText, besides missing: RouteMethod?, counting steps: inout Int, where isWanted: (RouteEntry) -> Bool
    ) -> [RouteMethod] {
        if missing == .get, root.others.isEmpty { return [] }
        // Each table is searched once.
        var isGet = false
        let shared = match(url, counting: &steps) { entry in
            guard isWanted(entry) else { return false }
            if entry.pattern.method == .get { isGet = true }
            return entry.pattern.method == nil
        }
        return RouteMethod.allCases.filter { method in
            if method == missing { return false }
            if shared != nil || method == .get && isGet { return true }
            if let own = root.others[method], own.match(url, counting: &steps, where: isWanted) != nil { return true }
            return fallback(url, method).map { isWanted($0.entry.takeUnretainedValue()) } ?? false
        }
    }
}

extension PluginError {
    /// The error for a URL that only routes of other methods match.
    static func methodNotAllowed(_ url: String, _ method: RouteMethod, _ others: [RouteMethod]) -> PluginError {
        PluginError(
            .methodNotAllowed,
            "“\(url.shortened)” cannot be opened with \(method.rawValue). It can be opened with "
                + "\(others.map(\.rawValue).joined(separator: ", ")).")
    }
}
