import PluginABI
import PluginFile

extension Plan {
    /// The candidates of each module. ``choose()`` selects the best candidates that can serve together.
    struct Options {
        struct Group {
            private(set) var ranked: [Candidate]
            /// The index of the candidate that is currently chosen.
            var chosenIndex = 0
            /// Whether the chosen candidate can serve.
            var isAdmitted = false
            /// The reasons why other candidates cannot serve, by path.
            var refusals: [PathKey: PluginError] = [:]
            /// The paths of the refused candidates that wait for a hook.
            var starting: Set<PathKey> = []

            var chosen: Candidate { ranked[chosenIndex] }
            var hasMore: Bool { chosenIndex + 1 < ranked.count }

            /// Chooses the next candidate. While a better one waits for a hook, the next one is the one that serves,
            /// if any, so that no other file is started only for that time.
            mutating func moveOn() {
                chosenIndex += 1
                guard ranked[..<chosenIndex].contains(where: { starting.contains(PathKey($0.path)) }),
                    let served = ranked[chosenIndex...].firstIndex(where: { $0.served != nil })
                else { return }
                ranked.insert(ranked.remove(at: served), at: chosenIndex)
            }
        }

        /// The modules that the program registers; those that already serve come first.
        private let program: [Candidate]
        private let routes: Routes
        /// The services that the program has bound to targets.
        private let services: [ModuleManifest.Service]
        /// The generations that serve now.
        private let served: [Generation]
        /// The modules with a hook that has not returned yet.
        private let starting: [ObjectIdentifier: PluginError]
        /// The registered modules. Like those that serve, they keep what they claim, and their routes are in effect.
        private let registered: Set<ObjectIdentifier>
        /// The modules that the plan does not cover; `nil` if it covers all.
        private let others: SettledModules.Others?
        private let registeredRoutes: [(registration: ObjectIdentifier, routes: [RouteEntry])]
        private(set) var groups: [Group] = []
        /// The candidates that can serve, in the order of their start.
        private(set) var serving: [Candidate] = []
        /// The change of the routes if they serve; `nil` if none can.
        private(set) var routeChange: RouteChange?
        /// The reason why the last of ``program`` cannot serve.
        private(set) var refusal: PluginError?

        init(
            program: [Candidate], served: [Generation], routes: Routes, services: [ModuleManifest.Service],
            starting: [ObjectIdentifier: PluginError], registered: [LoadedModule],
            besides others: SettledModules.Others?
        ) {
            (self.program, self.served, self.routes, self.services) = (program, served, routes, services)
            (self.starting, self.others) = (starting, others)
            self.registered = Set(registered.map { ObjectIdentifier($0.registration) })
            registeredRoutes = registered.filter { !$0.routes.isEmpty }.map {
                (ObjectIdentifier($0.registration), $0.routes)
            }
        }

        mutating func add(_ ranked: [Candidate]) { groups.append(Group(ranked: ranked)) }

        mutating func reserveCapacity(_ count: Int) { groups.reserveCapacity(count) }

        /// Tries the first candidate of each module. If it cannot start, tries the next one, and so on.
        mutating func choose() {
            while true {
                let blocked = attempt()
                let movable = blocked.filter { groups[$0].hasMore }
                guard !movable.isEmpty else { return }
                // Candidates whose requirement itself waits may still start, so all others move on first.
                let settled = movable.filter { index in
                    groups[index].refusals[groups[index].chosen.path]?.code != .requirementWaits
                }
                for index in settled.isEmpty ? [movable[0]] : settled { groups[index].moveOn() }
            }
        }

        /// Determines which of the chosen candidates can start, and why the others cannot. Returns the groups of the
        /// latter.
        private mutating func attempt() -> [Int] {
            let chosen = groups.map(\.chosen)
            var leaving = served
            if !leaving.isEmpty {
                let staying = Set((program + chosen).compactMap { $0.served?.generation.number })
                leaving.removeAll { staying.contains($0.number) }
            }
            var freed: [RouteEntry] = []
            if !registeredRoutes.isEmpty {
                let keeping = chosen.filter { keeps($0) }
                let kept = Set(keeping.map { ObjectIdentifier($0.module.registration) })
                freed = registeredRoutes.filter { !kept.contains($0.registration) }.flatMap(\.routes)
            }
            var claims = Claims(routes, services, without: leaving.flatMap(\.routes) + freed, besides: others)
            var present = Provisions(besides: others)
            // Modules that already serve or are registered keep what they claim.
            for kept in program where keeps(kept) { claims.keep(kept.module, kept.path) }
            for kept in chosen where keeps(kept) { claims.keep(kept.module, kept.path) }
            claims.reserveCapacity(chosen.count)
            refusal = nil
            let registered = program.filter { candidate in
                do throws(PluginError) {
                    if candidate.served == nil {
                        try requireFreeName(for: candidate)
                        try claims.take(candidate.module, candidate.path)
                    }
                    present.add(candidate.outline)
                    return true
                } catch {
                    refusal = error
                    return false
                }
            }
            let owners = Dictionary(registered.map { ($0.outline.name, $0) }) { first, _ in first }
            var conflicts: [Int: PluginError] = [:]
            let order = StartOrder(chosen.map(\.outline), besides: present) { index in
                let candidate = chosen[index]
                do throws(PluginError) {
                    if let other = owners[candidate.outline.name] { throw .nameTaken(candidate, by: other) }
                    if candidate.served == nil {
                        if let error = starting[ObjectIdentifier(candidate.module)] { throw error }
                        if candidate.module.isOpen, let error = candidate.module.missingPermission { throw error }
                        if !keeps(candidate) { try claims.take(candidate.module, candidate.path) }
                    }
                    return true
                } catch {
                    conflicts[index] = error
                    return false
                }
            }
            serving = registered + order.starting.map { chosen[$0] }
            routeChange = claims.routeChange
            for index in order.starting { groups[index].isAdmitted = true }
            if order.blocked.isEmpty { return [] }
            let unmet = UnmetRequirements(
                chosen: chosen.map(\.outline), starting: Set(order.starting), present: present,
                hooked: Set(groups.indices.filter { starting[ObjectIdentifier(chosen[$0].module)] != nil }))
            for index in order.blocked {
                groups[index].isAdmitted = false
                let path = chosen[index].path
                groups[index].refusals[path] = conflicts[index] ?? unmet.reason(of: index)
                if unmet.waitsForHook(index) { groups[index].starting.insert(PathKey(path)) }
            }
            return order.blocked
        }

        /// Whether what a module claims is already in effect.
        private func keeps(_ candidate: Candidate) -> Bool {
            candidate.served != nil || registered.contains(ObjectIdentifier(candidate.module.registration))
        }

        /// Checks that a module which the program registers has a name of its own.
        ///
        /// - Throws: `conflict` if another module has the same name.
        private func requireFreeName(for candidate: Candidate) throws(PluginError) {
            let others = program.filter { $0.served != nil } + groups.flatMap(\.ranked).filter { $0.served != nil }
            let other = others.first { $0.outline.name == candidate.outline.name }
            if let other { throw .nameTaken(candidate, by: other) }
        }
    }
}

extension PluginError {
    fileprivate static func nameTaken(_ candidate: Plan.Candidate, by other: Plan.Candidate) -> PluginError {
        PluginError(
            .conflict,
            "\(candidate.outline.name) (\(candidate.path)) has the name of an existing module: "
                + "\(other.outline.name) \(other.outline.version) from \(other.path), which keeps it. A module that "
                + "the program registers neither replaces another module nor is replaced by one.")
    }
}
