package import PluginABI

/// A difference between the manifests of two versions of a module.
package struct ManifestChange: Sendable, Equatable {
    package enum Kind: String, Sendable { case added, changed, removed }

    /// The weight of a change, in ascending order. The version of the module must reflect it.
    package enum Weight: Int, Sendable, Comparable {
        /// A change that does not affect callers.
        case patch
        /// Callers that work with the old version work with the new one.
        case addition
        /// Callers that work with the old version may fail with the new one.
        case breaking

        package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    }

    package let kind: Kind
    package let weight: Weight
    /// The thing that has changed, such as `A/buy` or `the route app://shop`.
    package let subject: String
    /// What has changed, as the end of a sentence that begins with the subject; empty if the subject was added or
    /// removed.
    package let detail: String

    /// The change as text for people: `changed A/buy: it requires “count” (breaking)`.
    package var description: String {
        "\(kind.rawValue) \(subject)" + (detail.isEmpty ? "" : ": it \(detail)")
            + (weight == .breaking ? " (breaking)" : "")
    }
}

/// The changes from one version of a module to another, and what its version should be.
package struct ManifestComparison: Sendable {
    /// The module's name.
    package let name: String
    package let old: SemanticVersion
    package let new: SemanticVersion
    package private(set) var changes: [ManifestChange] = []
    /// The services whose own versions do not reflect their changes, each as a sentence.
    package private(set) var serviceProblems: [String] = []
    private var types: TypeComparison

    /// Compares two versions of a module.
    ///
    /// - Throws: `invalidManifest` if they are manifests of different modules.
    package init(from old: ModuleManifest, to new: ModuleManifest) throws(PluginError) {
        guard old.name == new.name else {
            throw PluginError(
                .invalidManifest,
                "\(old.name) and \(new.name) are two modules. Compare two versions of one.")
        }
        (name, self.old, self.new) = (new.name, old.version, new.version)
        types = TypeComparison(from: old.values, to: new.values)
        groups(old.targets.map { ($0.name, $0.actions) }, new.targets.map { ($0.name, $0.actions) }, "the target ", "/")
        groups(
            old.types.map { ($0.name, $0.actions) }, new.types.map { ($0.name, $0.actions) }, "the object type ", "#")
        actions(old.events, new.events) { "the subscription to \($0)" }
        actions(old.interceptors, new.interceptors) { "the interceptor \($0)" }
        routes(old.routes, new.routes)
        services(from: old, to: new)
        surroundings(from: old, to: new)
        compareTargets(old.targets, new.targets)
        changes += types.changes
    }

    /// The largest weight of the changes; `nil` if there are none.
    package var weight: ManifestChange.Weight? { changes.map(\.weight).max() }

    /// The lowest version that reflects the changes. An unchanged manifest may keep its version.
    package var requiredVersion: SemanticVersion {
        guard let weight, old.prerelease.isEmpty else { return old }
        return old.next(for: weight)
    }

    /// The reason why the version is wrong, as a sentence; `nil` if it reflects the changes.
    package var problem: String? {
        if new < old { return "The version \(new) is lower than \(old): hosts prefer the old one." }
        guard let weight, new.release < requiredVersion.release || new == old else { return nil }
        let count = changes.count { $0.weight == weight }
        let what =
            switch weight {
            case .breaking: count == 1 ? "a breaking change" : "\(count) breaking changes"
            case .addition: count == 1 ? "an addition" : "\(count) additions"
            case .patch: "a change of the manifest"
            }
        let least = old.prerelease.isEmpty ? "\(requiredVersion) or higher" : "higher than \(old)"
        return "The version is \(new) after \(old), with \(what): it ought to be \(least)."
    }
}

// MARK: - Parts of a manifest

extension ManifestComparison {
    private mutating func add(
        _ kind: ManifestChange.Kind, _ weight: ManifestChange.Weight, _ subject: String, _ detail: String = ""
    ) {
        changes.append(ManifestChange(kind: kind, weight: weight, subject: subject, detail: detail))
    }

    /// Compares targets or object types.
    private mutating func groups(
        _ old: [(name: String, actions: [ModuleManifest.Action])],
        _ new: [(name: String, actions: [ModuleManifest.Action])], _ what: String, _ separator: String
    ) {
        for (name, actions) in old {
            guard let other = new.first(where: { $0.name == name }) else {
                add(.removed, .breaking, what + name)
                continue
            }
            self.actions(actions, other.actions) { "\(name)\(separator)\($0)" }
        }
        for (name, _) in new where !old.contains(where: { $0.name == name }) { add(.added, .addition, what + name) }
    }

    private mutating func actions(
        _ old: [ModuleManifest.Action], _ new: [ModuleManifest.Action], _ title: (String) -> String
    ) {
        for action in old {
            guard let other = new.first(where: { $0.name == action.name }) else {
                add(.removed, .breaking, title(action.name))
                continue
            }
            for (weight, detail) in other.differences(from: action, &types) {
                add(.changed, weight, title(action.name), detail)
            }
        }
        for action in new where !old.contains(where: { $0.name == action.name }) {
            add(.added, .addition, title(action.name))
        }
    }

    private mutating func compareTargets(_ old: [ModuleManifest.Target], _ new: [ModuleManifest.Target]) {
        for target in old {
            guard let other = new.first(where: { $0.name == target.name }) else { continue }
            if target.instance != other.instance {
                add(.changed, .addition, "the target \(target.name)", "makes instances in another way")
            }
            if target.concurrency != other.concurrency {
                add(.changed, .patch, "the target \(target.name)", "is \(other.concurrency.rawValue) now")
            }
        }
    }

    private mutating func routes(_ old: [ModuleManifest.Route], _ new: [ModuleManifest.Route]) {
        for route in old {
            let subject = "the route \(route.title)"
            let others = new.filter { $0.pattern == route.pattern }
            guard
                let other = others.first(where: { $0.method == route.method })
                    ?? others.first(where: { $0.method == nil })
            else {
                add(.removed, .breaking, subject)
                continue
            }
            if other.method != route.method { add(.changed, .addition, subject, "answers every method") }
            if let name = route.name, other.name != name {
                add(.changed, .breaking, subject, "is no longer named “\(name)”")
            } else if let name = other.name, route.name == nil {
                add(.changed, .addition, subject, "is named “\(name)”")
            }
            if route.target != other.target || route.action != other.action {
                add(.changed, .addition, subject, "leads to \(other.target)/\(other.action)")
            }
            if route.defaults != other.defaults || route.transition != other.transition || route.groups != other.groups
            {
                add(.changed, .addition, subject, "has other defaults, groups or another transition")
            }
        }
        for route in new {
            let isKnown = old.contains {
                $0.pattern == route.pattern && ($0.method == route.method || route.method == nil)
            }
            if !isKnown { add(.added, .addition, "the route \(route.title)") }
        }
    }

    /// Compares each service with the new one that serves its callers: the lowest one whose version is not lower.
    private mutating func services(from old: ModuleManifest, to new: ModuleManifest) {
        var served: [ServedInterface] = []
        for service in old.services {
            let candidates = new.services.filter { $0.name == service.name && $0.version >= service.version }
            guard let other = candidates.min(by: { $0.version < $1.version }) else {
                add(.removed, .breaking, "the service \(service.name) \(service.version)")
                continue
            }
            served.append(ServedInterface(of: service, in: old, by: other, in: new, &types))
        }
        types.complete()
        let (broken, changed) = (types.causes(.breaking), types.causes(.patch))
        for interface in served { compare(interface, broken, changed) }
        for service in new.services where !old.services.contains(where: { $0.name == service.name }) {
            add(.added, .addition, "the service \(service.name) \(service.version)")
        }
    }

    private mutating func compare(
        _ served: ServedInterface, _ broken: [TypeComparison.Pair: String], _ changed: [TypeComparison.Pair: String]
    ) {
        let (service, other) = (served.service, served.other)
        let subject = "the service \(service.name) \(service.version)"
        if other.version != service.version {
            add(.changed, .addition, subject, "has the version \(other.version)")
        }
        if let obstacle = served.obstacle ?? served.reached.compactMap({ broken[$0] }).min() {
            add(.changed, .breaking, subject, "does not serve its callers: \(obstacle)")
            let required = service.version.next(for: .breaking)
            if other.version.release < required.release {
                serviceProblems.append(
                    "The service \(other.name) has the version \(other.version), but callers of \(service.version) "
                        + "could fail: \(obstacle). Its version ought to be \(required) or higher.")
            }
        } else if other.version == service.version,
            served.isChanged || served.reached.contains(where: { changed[$0] != nil })
        {
            let required = service.version.next(for: .addition)
            serviceProblems.append(
                "The interface of the service \(other.name) \(other.version) has changed: its version ought to be "
                    + "\(required) or higher.")
        }
    }

    /// Compares what the module needs, and how it is started.
    private mutating func surroundings(from old: ModuleManifest, to new: ModuleManifest) {
        for requirement in new.requirements where !old.requirements.contains(requirement) {
            let isNew = !old.requirements.contains { $0.subject == requirement.subject }
            let subject = "the requirement of \(requirement.subject)"
            if isNew { add(.added, .addition, subject) } else { add(.changed, .addition, subject, "is \(requirement)") }
        }
        for requirement in old.requirements
        where !new.requirements.contains(where: { $0.subject == requirement.subject }) {
            add(.removed, .patch, "the requirement of \(requirement.subject)")
        }
        for permission in new.permissions where !old.permissions.contains(where: { $0.subject == permission.subject }) {
            add(.added, .addition, "the permission \(permission)")
        }
        for permission in old.permissions where !new.permissions.contains(where: { $0.subject == permission.subject }) {
            add(.removed, .patch, "the permission \(permission)")
        }
        if old.start != new.start { add(.changed, .addition, "\"start\"", "is \(new.start.rawValue) now") }
        if old.isStateless != new.isStateless {
            add(.changed, .addition, "\"stateless\"", "is \(new.isStateless) now")
        }
        if old.isolation != new.isolation {
            add(.changed, .addition, "\"isolation\"", "is \(new.isolation.rawValue) now")
        }
        if new.abiMinor > old.abiMinor {
            add(
                .changed, .addition, "\"abiMinor\"",
                "is \(new.abiMinor) now: older hosts do not load the module")
        }
        if Set(old.hooks) != Set(new.hooks) || old.isExclusive != new.isExclusive {
            add(.changed, .patch, "\"hooks\"", "lists \(new.hooks.map(\.rawValue).joined(separator: ", ")) now")
        }
    }
}

/// The interface of an old service, and the new service that serves its callers.
private struct ServedInterface {
    let service: ModuleManifest.Service
    let other: ModuleManifest.Service
    /// The reason why callers of the service could fail, apart from changes in the types of ``reached``.
    var obstacle: String?
    /// Whether the actions differ, apart from such changes.
    let isChanged: Bool
    /// The records and enumerations that the types of its actions refer to.
    var reached: Set<TypeComparison.Pair> = []

    init(
        of service: ModuleManifest.Service, in old: ModuleManifest, by other: ModuleManifest.Service,
        in new: ModuleManifest, _ types: inout TypeComparison
    ) {
        (self.service, self.other) = (service, other)
        let (promised, actions) = (service.actions(in: old), other.actions(in: new))
        isChanged = promised != actions
        guard let promised, let actions else { return }
        obstacle = actions.obstacle(to: promised)
        let named = Dictionary(actions.map { ($0.name, $0) }) { first, _ in first }
        for action in promised {
            let found = named[action.name]?.typeObstacle(insteadOf: action, &types, &reached)
            obstacle = obstacle ?? found
        }
    }
}

extension ModuleManifest.Service {
    /// The actions that callers may use, without their summaries, sorted by name.
    fileprivate func actions(in manifest: ModuleManifest) -> [ModuleManifest.Action]? {
        let actions = interface ?? manifest.targets.first { $0.name == target }?.actions
        return actions?.map(\.plain).sorted { $0.name < $1.name }
    }
}

extension SemanticVersion {
    /// Returns the lowest next version that reflects a change of this weight. In 0.x, minor versions may break callers.
    fileprivate func next(for weight: ManifestChange.Weight) -> SemanticVersion {
        switch weight {
        case .breaking: major > 0 ? SemanticVersion(major + 1, 0, 0) : SemanticVersion(0, minor + 1, 0)
        case .addition where major > 0: SemanticVersion(major, minor + 1, 0)
        default: SemanticVersion(major, minor, patch + 1)
        }
    }
}
