import PluginFile

/// The state of a host's modules as other threads see it: as it was at the end of a step, never in the middle of one.
struct ModulesSnapshot: Sendable {
    var folders = FolderContents()
    var serving = Serving()
    var drains = Drains()
    var starts = ModuleStarts()
    var ownProblems = OwnProblems()

    /// Returns the status of the modules that the program has registered, then of every file, sorted by path.
    ///
    /// Modules that the table serves are active, even if `serving` does not contain them yet: a module that can be
    /// called is also listed.
    func modules(_ table: Table) -> [ModuleStatus] {
        var program: [ModuleStatus] = []
        var present: [ObjectIdentifier: Generation] = [:]
        for generation in table.generations {
            guard let module = generation.module else { continue }
            present[ObjectIdentifier(module)] = generation
            guard module.isRegistered else { continue }
            program.append(
                ModuleStatus(.active, file: module.file, since: generation.created, module.outline, generation))
        }
        let served = Dictionary(serving.modules.values.map { (PathKey($0.path), $0) }) { first, _ in first }
        var statuses = folders.records.map { path, record in
            let known = served[path]
            guard let module = record.module, let generation = present[ObjectIdentifier(module)],
                generation !== known?.generation
            else { return status(record, known) }
            return record.status(Served(generation, module, path: record.path, since: generation.created))
        }
        for served in serving.modules.values where folders.records[served.path] == nil {
            statuses.append(served.statusWithoutFile)
        }
        if let opened = starts.opened {
            let index = statuses.firstIndex { $0.file.hasBytes(of: opened.path) } ?? statuses.endIndex
            let status = opened.status(index < statuses.endIndex ? statuses[index] : nil)
            statuses.replaceSubrange(index..<min(index + 1, statuses.endIndex), with: [status])
        }
        statuses = program + statuses.sorted(byBytesOf: \.file)
        let dead = table.deadRoutes
        if dead.isEmpty { return statuses }
        for index in statuses.indices where statuses[index].state == .active {
            let own = RouteEntry.Owner.module(statuses[index].name ?? "")
            statuses[index].problems = dead.filter { $0.route.owner == own }.problems
        }
        return statuses
    }

    private func status(_ record: FileRecord, _ served: Served?) -> ModuleStatus {
        var status = record.status(served)
        if status.state == .loaded || status.state == .waiting, starts.contains(record) { status.state = .starting }
        guard let note = starts.note(on: record) else { return status }
        let version = record.module?.outline.version.description ?? ""
        status.note = served == nil ? note : "\(version) is starting: \(note)"
        return status
    }

    /// The generations that serve, those that drain, and the last hundred that were retired.
    var generations: [GenerationStatus] {
        serving.all.map { GenerationStatus($0.generation, .active, since: $0.since) }.sorted { $0.name < $1.name }
            + drains.draining.map { GenerationStatus($0.generation, .draining, since: $0.since) } + drains.retired
    }
}
