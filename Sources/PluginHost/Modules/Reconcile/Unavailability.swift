import PluginABI
import PluginFile

/// Which modules a plan makes unavailable when it is carried out, and why.
struct Unavailability {
    private let plan: Plan
    private let folders: FolderContents
    /// The names of the modules that serve from then on.
    private let names: Set<String>
    /// The records with new verdicts.
    let judged: [FileRecord]
    /// The modules that were registered before and are removed without having started.
    let unregistered: [LoadedModule]

    /// - Parameters:
    ///   - folders: The records of files before the plan is carried out.
    ///   - present: The modules that were registered before.
    ///   - next: The modules that are registered from then on; `nil` if they stay the same.
    init(of plan: Plan, _ folders: FolderContents, registered present: KnownModules, then next: KnownModules?) {
        (self.plan, self.folders) = (plan, folders)
        let names = Set(plan.serving.map(\.outline.name))
        self.names = names
        judged =
            plan.registrations?.judged
            ?? plan.verdicts.compactMap { path, verdict in folders.records[path]?.decided(verdict) }
            .sorted(byBytesOf: \.path)
        guard let next else {
            unregistered = []
            return
        }
        let concerned = plan.names.map { present.modules(named: $0) } ?? present.modules.sorted { $0.name < $1.name }
        unregistered = concerned.filter { !names.contains($0.name) && next.module(named: $0.name) == nil }
    }

    /// Returns the record of a file after the plan is carried out.
    func record(_ path: String) -> FileRecord? { judgedRecord(path) ?? folders.records[path] }

    private func judgedRecord(_ path: String) -> FileRecord? {
        var (start, end) = (0, judged.count)
        while start < end {
            let middle = (start + end) / 2
            if judged[middle].path.sortsByBytes(before: path) { start = middle + 1 } else { end = middle }
        }
        return start < judged.count && judged[start].path.hasBytes(of: path) ? judged[start] : nil
    }

    /// Returns whether a module is no longer registered because its start has failed, which is reported as a failure.
    func hasFailed(_ module: LoadedModule) -> Bool { record(module.file)?.isFailure == true }

    /// The records of the files that are not served.
    private var refused: [FileRecord] {
        let others = folders.unsettledRecords.filter { $0.error != nil && judgedRecord($0.path) == nil }
        return plan.registrations == nil ? others + judged.filter { !$0.isSettled && $0.error != nil } : others
    }

    func reason(of leaving: Served) -> String {
        if leaving.module.isRegistered { return "the program has unregistered it." }
        return reason(of: leaving.module, in: leaving.path)
    }

    func reason(of leaving: LoadedModule) -> String { reason(of: leaving, in: leaving.file) }

    private func reason(of leaving: LoadedModule, in path: String) -> String {
        let own = record(path)
        let others = refused.filter { $0.claimedModule?.name == leaving.name }
        if let error = own?.error ?? others.min(by: { PathKey($0.path) < PathKey($1.path) })?.error {
            return error.message
        }
        return "it was removed: \(path) \(own == nil ? "is gone" : "no longer contains it")."
    }

    /// Notes the modules that leave, with the reasons.
    func note(in serving: inout Serving) {
        for leaving in plan.gone where !leaving.module.isRegistered {
            serving.noteDeparture(of: leaving.module, reason(of: leaving))
        }
        for leaving in unregistered { serving.noteDeparture(of: leaving, reason(of: leaving)) }
    }

    /// Returns the modules that are unavailable when the plan has been carried out.
    ///
    /// - Parameter serving: The modules that serve before, with the departures that were noted.
    func absences(_ serving: Serving) -> UnavailableModules {
        let serves: (String) -> Bool = { name in
            names.contains(name) || plan.names?.contains(name) == false && serving.contains(name)
        }
        return serving.absences(unless: serves, refused)
    }
}
