import PluginABI
import PluginFile

/// The effects of removing a module or rolling it back. They are known in advance, and either all of them happen or
/// none of them.
public struct PlannedChange: Sendable, CustomStringConvertible {
    /// The module that is removed or rolled back.
    public let module: String
    /// The files that are moved from their folders to the version store.
    public let moved: [String]
    /// The file that is put back from the version store; `nil` if there is none.
    public let restored: String?
    /// The modules that stop without being replaced, in the order in which they stop.
    public let stopping: [Stop]
    /// The modules that start, in the order in which they start.
    public let starting: [Start]

    /// A module that stops.
    public struct Stop: Sendable, Hashable {
        /// The module's name.
        public let name: String
        /// The version that serves until the module stops.
        public let version: String
        /// The reason why it stops.
        public let reason: String
    }

    /// A module that starts, or a version that replaces another version of its module.
    public struct Start: Sendable, Hashable {
        /// The module's name.
        public let name: String
        /// The version that will serve.
        public let version: String
        /// The file that the version comes from.
        public let file: String
        /// The version that is replaced; `nil` if none serves.
        public let previous: String?
    }

    /// The effects, one line each.
    public var description: String {
        var lines = moved.map { "moves \($0) to the kept versions" }
        if let restored { lines.append("puts back \(restored)") }
        lines += stopping.map { "stops \($0.name) \($0.version): \($0.reason)" }
        lines += starting.map { start in
            if let previous = start.previous {
                "replaces \(start.name) \(previous) with \(start.version) from \(start.file)"
            } else {
                "starts \(start.name) \(start.version) from \(start.file)"
            }
        }
        return lines.joined(separator: "\n")
    }

    /// - Parameters:
    ///   - plan: The plan of what should serve afterwards.
    ///   - context: What serves and is registered now.
    init(
        of module: String, moving moved: [String], restoring restored: String?, _ plan: Plan, _ context: ChangeContext
    ) {
        (self.module, self.moved, self.restored) = (module, moved, restored)
        let served = context.serving.modules
        let names = Set((plan.serving + plan.resting).map(\.outline.name))
        var stops = plan.leaving.reversed().filter { !names.contains($0.name) }.map { leaving in
            let reason = plan.verdicts[leaving.path]?.error?.message ?? "its file will be moved to the kept versions."
            return Stop(name: leaving.name, version: leaving.version.description, reason: reason)
        }
        for known in context.registry.table.contents.known.modules where !names.contains(known.name) {
            let reason = plan.verdicts[known.file]?.error?.message ?? "its file will be moved to the kept versions."
            stops.append(Stop(name: known.name, version: known.outline.version.description, reason: reason))
        }
        stopping = stops
        starting = plan.serving.filter { $0.served == nil }.map { candidate in
            Start(
                name: candidate.outline.name, version: candidate.outline.version.description, file: candidate.path,
                previous: served[candidate.outline.name]?.version.description)
        }
    }

    /// The other modules that serve now, and would no longer serve or would serve only in a lower version.
    var dependents: [String] {
        stopping.filter { $0.name != module }.map { "\($0.name) \($0.version)" }
            + starting.filter { start in
                guard start.name != module, let previous = start.previous.flatMap({ SemanticVersion($0) }),
                    let version = SemanticVersion(start.version)
                else { return false }
                return version < previous
            }.map { "\($0.name) \($0.previous!)" }
    }

    /// Checks that no other module depends on the version that is removed.
    ///
    /// - Throws: `required`, naming the dependent modules and the reasons.
    func requireNoDependents(_ what: String) throws(PluginError) {
        let dependents = dependents
        guard !dependents.isEmpty else { return }
        let reasons = stopping.filter { $0.name != module }.map(\.reason)
        throw PluginError(
            .required,
            ([
                "\(module) is not \(what): \(dependents.joined(separator: ", ")) "
                    + "\(dependents.count == 1 ? "depends" : "depend") on the current version."
            ] + reasons + ["Change them first, or force the change."]).joined(separator: " "))
    }
}
