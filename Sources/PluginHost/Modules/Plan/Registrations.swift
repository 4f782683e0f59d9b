import PluginFile

extension Plan {
    /// Creates the plan of most starts with known modules: nothing serves or is registered, and each module becomes
    /// registered. The result is that of a plan which compares the candidates of each module, but takes less time.
    ///
    /// `nil` if candidates must be compared: a module is open, a name is claimed twice, or a module has requirements.
    ///
    /// - Parameters:
    ///   - records: The records of all files.
    ///   - routes: The current routes, none of which belongs to a module.
    init?(registering records: [FileRecord], _ routes: Routes) {
        var modules: [LoadedModule] = []
        var judged: [FileRecord] = []
        modules.reserveCapacity(records.count)
        judged.reserveCapacity(records.count)
        for record in records {
            guard let module = record.claimedModule else { continue }
            guard !module.isOpen, module.outline.requirements.isEmpty, record.verdict == .undecided,
                let verdict = record.decided(.serves)
            else { return nil }
            modules.append(module)
            judged.append(verdict)
        }
        guard !modules.isEmpty else { return nil }
        let isInOrder = modules.indices.dropFirst().allSatisfy { index in
            ModuleOrder(modules[index - 1].outline) < ModuleOrder(modules[index].outline)
        }
        let known = KnownModules(isInOrder ? modules : modules.inOrder)
        guard known.areDistinct, let change = Self.routeChange(adding: known.modules, to: routes) else { return nil }
        self.init(registering: known, judged.sorted(byBytesOf: \.path), change)
    }

    /// Returns the change of routes if modules are added; `nil` if there is a conflict.
    private static func routeChange(adding modules: [LoadedModule], to routes: Routes) -> RouteChange? {
        var table = routes.table
        let new = modules.flatMap { $0.routes }
        for entry in new where !table.isOverridden(entry) {
            guard table.insert(entry) == nil else { return nil }
        }
        return RouteChange(before: routes.table, without: [], adding: new, after: table)
    }
}
