import PluginABI
import PluginFile
import Synchronization

/// The content of the table that is proposed to starting modules.
struct Proposed {
    /// The generations in the order of their start.
    private var generations: [Generation]
    private var known: KnownModules
    private let routeChange: RouteChange?

    init(
        _ plan: Plan, _ newcomers: [ObjectIdentifier: Newcomer], besides context: ChangeContext
    ) {
        let contents = context.registry.table.contents
        let present = contents.known
        routeChange = plan.routeChange
        generations = plan.generations(with: newcomers, among: contents.generations)
        known = present.changed(to: plan.registered(after: present, in: context))
        guard let outer = context.proposed else { return }
        let numbers = Set(generations.map(\.number))
        generations = (outer.generations.filter { !numbers.contains($0.number) } + generations).inOrder
        known = outer.known.without(Set(generations.map(\.name)))
    }

    /// Returns the content with the started modules added, except those that it already contains.
    func with(_ started: [Generation]) -> Proposed {
        let names = Set(generations.map(\.name))
        let started = started.filter { !names.contains($0.name) }
        guard !started.isEmpty else { return self }
        var next = self
        next.generations = (generations + started).inOrder
        next.known = known.without(Set(started.map(\.name)))
        return next
    }

    /// Returns the table that shows this content.
    func table(after published: Table) -> Table {
        published.changed(routes: routeChange) { ($0.generations, $0.known) = (generations, known) }
    }
}

extension ChangeContext {
    /// Makes the proposed content visible to starting modules.
    func propose() {
        let table = proposed?.table(after: registry.table)
        registry.propose(table)
    }
}
