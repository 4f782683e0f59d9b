import PluginFile

/// The order of modules in hooks and events if none depends on the other: by level, then by priority (higher first),
/// then by name.
struct ModuleOrder: Comparable {
    let level: ModuleManifest.Level
    let priority: Int
    let name: String

    init(_ outline: ModuleOutline) {
        (level, priority, name) = (outline.level, outline.priority, outline.name)
    }

    static func < (left: ModuleOrder, right: ModuleOrder) -> Bool {
        if left.level != right.level { return left.level == .basic }
        if left.priority != right.priority { return left.priority > right.priority }
        return left.name < right.name
    }
}

/// The names and services, with their versions, that a set of modules provides to others.
struct Provisions {
    private var modules: [String: SemanticVersion] = [:]
    private var services: [String: [(version: SemanticVersion, module: String)]] = [:]
    /// Modules that count as providers, although they are not added here.
    let others: SettledModules.Others?

    init(besides others: SettledModules.Others? = nil) { self.others = others }

    mutating func add(_ outline: ModuleOutline) {
        modules[outline.name] = outline.version
        for service in outline.services {
            services[service.name, default: []].append((service.version, outline.name))
        }
    }

    /// Returns the versions that are provided under a requirement's name, whether or not they satisfy it.
    func versions(for requirement: ModuleManifest.Requirement) -> [SemanticVersion] {
        switch requirement.subject {
        case .module(let name): (modules[name] ?? others?.version(of: name)).map { [$0] } ?? []
        case .service(let name):
            (services[name, default: []].map(\.version) + (others?.offers(of: name).map(\.key.version) ?? []))
                .sorted(by: >)
        }
    }

    func satisfies(_ requirement: ModuleManifest.Requirement) -> Bool {
        versions(for: requirement).contains(where: requirement.versions.contains)
    }
}

/// The order in which modules start: a module comes after those that it requires, otherwise ``ModuleOrder`` applies.
/// The order is the same for modules from all sources, and for events. Modules are stopped in reverse order.
struct StartOrder {
    /// The indices of the modules that can start, in order.
    private(set) var starting: [Int] = []
    /// The indices of the modules that cannot start, because a requirement is missing or itself waits, or because they
    /// were refused.
    private(set) var blocked: [Int] = []

    /// - Parameters:
    ///   - outlines: The outlines of the modules, in any order.
    ///   - present: What other modules provide.
    ///   - admit: Called with the index of each module when it is its turn. Returns false to refuse the module.
    init(
        _ outlines: [ModuleOutline], besides present: Provisions = Provisions(),
        admit: (Int) -> Bool = { _ in true }
    ) {
        let orders = outlines.map { ModuleOrder($0) }
        var remaining = outlines.indices.sorted { orders[$0] < orders[$1] }
        var provisions = present
        func take(at position: Int) {
            let index = remaining.remove(at: position)
            guard admit(index) else { return blocked.append(index) }
            provisions.add(outlines[index])
            starting.append(index)
        }
        guard outlines.contains(where: { !$0.requirements.isEmpty }) else {
            for index in remaining {
                if admit(index) { starting.append(index) } else { blocked.append(index) }
            }
            return
        }
        func isReady(_ position: Int) -> Bool {
            outlines[remaining[position]].requirements.allSatisfy { $0.isOptional || provisions.satisfies($0) }
        }
        // A module waits for its optional requirements if they can start without it.
        func isUnhurried(_ position: Int) -> Bool {
            outlines[remaining[position]].requirements.allSatisfy { wish in
                !wish.isOptional || provisions.satisfies(wish)
                    || !remaining.contains { $0 != remaining[position] && outlines[$0].provides(wish) }
            }
        }
        while let next = remaining.indices.first(where: { isReady($0) && isUnhurried($0) })
            ?? remaining.indices.first(where: isReady)
        {
            take(at: next)
        }
        blocked += remaining
        blocked.sort { orders[$0] < orders[$1] }
    }
}

/// A module in a list that is in start order.
protocol OrderedModule {
    var outlineInOrder: ModuleOutline { get }
}

extension Generation: OrderedModule {
    // Only the program itself has no module, and it is in no table.
    var outlineInOrder: ModuleOutline { module!.outline }
}

extension LoadedModule: OrderedModule {
    var outlineInOrder: ModuleOutline { outline }
}

extension Array where Element: OrderedModule {
    /// The modules in their start order.
    var inOrder: [Element] {
        if count < 2 { return self }
        let order = StartOrder(map(\.outlineInOrder))
        return (order.starting + order.blocked).map { self[$0] }
    }

    /// Returns these modules, which are in their start order, together with others.
    ///
    /// - Parameter areFree: Whether these modules are known to have no requirements.
    func adding(_ others: [Element], areFree: Bool = false) -> [Element] {
        if others.isEmpty { return self }
        let isFree = { (module: Element) in module.outlineInOrder.requirements.isEmpty }
        guard others.allSatisfy(isFree), areFree || allSatisfy(isFree) else { return (self + others).inOrder }
        var all = self
        for other in others {
            let own = ModuleOrder(other.outlineInOrder)
            var (start, end) = (0, all.count)
            while start < end {
                let middle = (start + end) / 2
                if own < ModuleOrder(all[middle].outlineInOrder) { end = middle } else { start = middle + 1 }
            }
            all.insert(other, at: start)
        }
        return all
    }
}
