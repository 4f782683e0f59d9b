import PluginABI
import PluginFile

/// When a module has its turn among others, in hooks and events, as far as none depends on the other: level, then
/// priority (higher first), then name.
struct ModuleOrder: Comparable {
    let level: ModuleManifest.Level
    let priority: Int
    let name: String

    init(_ manifest: ModuleManifest) {
        (level, priority, name) = (manifest.level, manifest.priority, manifest.name)
    }

    static func < (left: ModuleOrder, right: ModuleOrder) -> Bool {
        if left.level != right.level { return left.level == .basic }
        if left.priority != right.priority { return left.priority > right.priority }
        return left.name < right.name
    }
}

/// What a set of modules provides to others: their names and services, with the versions.
struct Provisions {
    private var modules: [String: SemanticVersion] = [:]
    private var services: [String: [(version: SemanticVersion, module: String)]] = [:]

    mutating func add(_ manifest: ModuleManifest) {
        modules[manifest.name] = manifest.version
        for service in manifest.services {
            services[service.name, default: []].append((service.version, manifest.name))
        }
    }

    /// What of a requirement's name is there, whether the version will do or not.
    func versions(for requirement: ModuleManifest.Requirement) -> [SemanticVersion] {
        switch requirement.subject {
        case .module(let name): modules[name].map { [$0] } ?? []
        case .service(let name): services[name, default: []].map(\.version).sorted(by: >)
        }
    }

    func satisfies(_ requirement: ModuleManifest.Requirement) -> Bool {
        versions(for: requirement).contains(where: requirement.versions.contains)
    }
}

/// Modules in the order in which they start: what others require comes before them, else ``ModuleOrder``. The same
/// order for every source of registration, and for events; its reverse is the order of the end.
struct StartOrder {
    /// Places in the array that was given, in order.
    private(set) var places: [Int] = []
    /// Places of those that cannot start: what they require is not there, or waits itself.
    private(set) var blocked: [Int] = []

    /// - Parameters:
    ///   - manifests: In any order.
    ///   - present: What is there besides them.
    ///   - admit: Called with each place when its turn has come; it may refuse it.
    init(
        _ manifests: [ModuleManifest], besides present: Provisions = Provisions(),
        admit: (Int) -> Bool = { _ in true }
    ) {
        var remaining = manifests.indices.sorted { ModuleOrder(manifests[$0]) < ModuleOrder(manifests[$1]) }
        var provisions = present
        func take(at index: Int) {
            let place = remaining.remove(at: index)
            guard admit(place) else { return blocked.append(place) }
            provisions.add(manifests[place])
            places.append(place)
        }
        guard manifests.contains(where: { !$0.requirements.isEmpty }) else {
            while !remaining.isEmpty { take(at: 0) }
            return
        }
        func isReady(_ index: Int) -> Bool {
            manifests[remaining[index]].requirements.allSatisfy { $0.isOptional || provisions.satisfies($0) }
        }
        // Who would like to have another one waits for it, unless that cannot start without this one.
        func isUnhurried(_ index: Int) -> Bool {
            manifests[remaining[index]].requirements.allSatisfy { wish in
                !wish.isOptional || provisions.satisfies(wish)
                    || !remaining.contains { $0 != remaining[index] && manifests[$0].provides(wish) }
            }
        }
        while let next = remaining.indices.first(where: { isReady($0) && isUnhurried($0) })
            ?? remaining.indices.first(where: isReady)
        {
            take(at: next)
        }
        blocked += remaining
        blocked.sort { ModuleOrder(manifests[$0]) < ModuleOrder(manifests[$1]) }
    }
}

extension ModuleManifest {
    func provides(_ requirement: Requirement) -> Bool {
        var own = Provisions()
        own.add(self)
        return own.satisfies(requirement)
    }
}

extension [Generation] {
    /// In the order in which modules have their turn.
    var inOrder: [Generation] {
        let order = StartOrder(map { $0.manifest! })  // Only the program itself has none, and it is in no table.
        return (order.places + order.blocked).map { self[$0] }
    }
}
