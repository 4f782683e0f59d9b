package import PluginABI
package import PluginFile

// Dead routes: those that cannot lead to their action as it is declared, or whose action no module offers.

extension RouteEntry {
    /// Returns why no URL can reach an action by the route, whatever else the URL contains; `nil` if one can.
    ///
    /// - Parameters:
    ///   - action: The action as messages name it.
    ///   - declared: The parameters that the action declares, by name.
    ///   - hasRest: Whether the action takes parameters that it does not declare.
    fileprivate func reasonForDeath(
        _ action: String, _ declared: [String: Value.Kind], hasRest: Bool
    ) -> String? {
        for name in pattern.names where !name.isGroupNumber {
            if ReservedName(rawValue: name) != nil {
                return
                    "Its group “\(name)” has a name under which the host passes information about the URL. Rename it."
            }
            if declared[name] == nil, !hasRest {
                return "\(action) has no parameter “\(name.shortened)”, which is a group of the route."
                    + didYouMean(name, declared.keys)
            }
        }
        for (name, value) in defaults.sorted(by: { $0.key < $1.key }) {
            guard let kind = declared[name] else {
                if hasRest {
                    guard ReservedName(rawValue: name) != nil else { continue }
                    return "The route has a default for “\(name)”, which only the host sets. Remove it."
                }
                return "\(action) has no parameter “\(name.shortened)”, for which the route has a default."
                    + didYouMean(name, declared.keys)
            }
            if !value.converts(to: kind) {
                return
                    "The parameter “\(name.shortened)” of \(action) is declared \(kind); the route's default for it is "
                    + "a value of type \(value.kind)."
            }
        }
        return nil
    }

    private func death(_ reason: String) -> PluginError {
        PluginError(.deadRoute, "The route “\(pattern.text.shortened)” of \(owner.description) is dead. \(reason)")
    }

    /// Returns the error of a dead route; `nil` if the route is not dead.
    func death(in table: Table) -> PluginError? {
        if closure != nil { return nil }
        let address = destination.address
        guard let endpoint = table.find(address.target, address.action)?.takeUnretainedValue() else {
            let known = table.contents.known.target(target)
            if let known, known.module.hasOnlyLiveRoutes, owner == .module(known.module.name) { return nil }
            if let action = known?.action(action) {
                let declared = Dictionary(action.parameters.map { ($0.name, $0.type) }) { first, _ in first }
                let title = "\(target)/\(action.name) of \(known?.module.name ?? "")"
                return reasonForDeath(title, declared, hasRest: action.hasRest).map(death)
            }
            return death(table.missing(target, action).message)
        }
        let declared = Dictionary(endpoint.parameters.map { ($0.name, $0.kind) }) { first, _ in first }
        return reasonForDeath(endpoint.title, declared, hasRest: endpoint.hasRest).map(death)
    }
}

extension Table {
    /// The dead routes, sorted by owner and pattern.
    var deadRoutes: [DeadRoute] {
        deadRoutes { table in
            table.routes.table.all.compactMap { route in
                route.death(in: table).map { DeadRoute(route: route, error: $0) }
            }.sorted { ($0.owner, $0.route.pattern.text) < ($1.owner, $1.route.pattern.text) }
        }
    }
}

extension [DeadRoute] {
    /// The first few errors of each owner, followed by the number of its other dead routes.
    var problems: [PluginError] {
        var problems: [PluginError] = []
        var counts: [String: Int] = [:]
        for dead in self {
            counts[dead.owner, default: 0] += 1
            if counts[dead.owner]! <= Self.mostOfOneOwner { problems.append(dead.error) }
        }
        for (owner, count) in counts.sorted(by: { $0.key < $1.key }) where count > Self.mostOfOneOwner {
            problems.append(
                PluginError(
                    .deadRoute,
                    "\(count - Self.mostOfOneOwner) more routes of \(owner) are dead. The route list names them all.")
            )
        }
        return problems
    }

    private static var mostOfOneOwner: Int { 10 }
}

extension ModuleManifest {
    /// Returns why routes of the module are dead, each as a sentence.
    ///
    /// - Throws: `invalidPattern`, `invalidManifest`.
    package func deadRoutes() throws(PluginError) -> [String] {
        try routeEntries(scheme: RoutePattern.unknownScheme).compactMap { route in
            let target = targets.first { $0.name == route.target }
            guard let action = target?.actions.first(where: { $0.name == route.action }) else { return nil }
            let declared = Dictionary(action.parameters.map { ($0.name, $0.type) }) { first, _ in first }
            let reason = route.reasonForDeath(
                "\(route.target)/\(route.action)", declared, hasRest: action.hasRest)
            return reason.map { "The route “\(route.pattern.text.shortened)” is dead. \($0)" }
        }
    }
}

extension String {
    /// Whether this is the number that a pattern gives to a group without a name.
    fileprivate var isGroupNumber: Bool { utf8.first.map { (0x30...0x39).contains($0) } ?? false }
}

extension Value {
    /// Whether the value is of a declared type, or converts to it without loss.
    fileprivate func converts(to kind: Kind) -> Bool {
        switch (self, kind) {
        case (_, .any), (.null, _): true
        case (.int(let number), .double): Double(exactly: number) != nil
        case (.double(let number), .int): Int(exactly: number) != nil
        default: self.kind == kind
        }
    }
}
