import PluginABI
import PluginFile

/// The plan of most starts with known modules: nothing serves or is registered, and each module becomes registered. The
/// result is that of a plan which compares the candidates of each module, but takes less time.
struct Registrations: Sendable {
    /// The records of the files that contain the modules.
    private let records: [FileRecord]
    /// The records with their verdicts, in the order of the paths.
    let judged: [FileRecord]
    /// The modules in the order in which they would start.
    let modules: KnownModules
    let routeChange: RouteChange

    /// `nil` if candidates must be compared: a module is open, a name is claimed twice, or a module has requirements.
    ///
    /// - Parameters:
    ///   - records: The records of all files.
    ///   - routes: The current routes, none of which belongs to a module.
    init?(_ records: [FileRecord], _ routes: Routes) {
        let records = records.filter { $0.claimedModule != nil }
        var (modules, judged): ([LoadedModule], [FileRecord]) = ([], [])
        modules.reserveCapacity(records.count)
        judged.reserveCapacity(records.count)
        for record in records {
            guard let module = record.module, !module.isOpen, module.outline.requirements.isEmpty,
                let verdict = record.decided(.serves), record.verdict == .undecided
            else { return nil }
            modules.append(module)
            judged.append(verdict)
        }
        guard !modules.isEmpty else { return nil }
        let isInOrder = modules.indices.dropFirst().allSatisfy { index in
            ModuleOrder(modules[index - 1].outline) < ModuleOrder(modules[index].outline)
        }
        let known = KnownModules(isInOrder ? modules : modules.inOrder)
        guard known.areDistinct else { return nil }
        var claims = Claims(routes)
        do throws(PluginError) {
            for module in known.modules { try claims.takeRoutes(of: module) }
        } catch { return nil }
        (self.records, self.modules, routeChange) = (records, known, claims.routeChange)
        self.judged = judged.sorted(byBytesOf: \.path)
    }

    /// Returns whether this is the plan for these records and routes.
    func areOf(_ records: [FileRecord], _ routes: Routes) -> Bool {
        guard routeChange.begins(with: routes.table) else { return false }
        var rest = self.records[...]
        for record in records {
            if rest.first?.isIdentical(to: record) == true {
                rest.removeFirst()
            } else if record.claimedModule != nil {
                return false
            }
        }
        return rest.isEmpty
    }
}
