import PluginABI
import PluginFile

/// What the removal or the rollback of a module touches. All of it is known before anything happens, and all of it is
/// done, or nothing.
public struct PlannedChange: Sendable, CustomStringConvertible {
    /// The module that was named.
    public let module: String
    /// The files that leave their folders for the store of kept versions.
    public let moved: [String]
    /// The file that comes out of the store into its folder; nil where none does.
    public let restored: String?
    /// What stops and nothing takes the place of, in the order in which it does.
    public let stopping: [Stop]
    /// What starts, in the order in which it does.
    public let starting: [Start]

    /// A module that stops.
    public struct Stop: Sendable, Hashable {
        /// The module's name.
        public let name: String
        /// The version that serves until then.
        public let version: String
        /// Why it does.
        public let reason: String
    }

    /// A module that starts, or one of whose other versions takes over.
    public struct Start: Sendable, Hashable {
        /// The module's name.
        public let name: String
        /// The version that will serve.
        public let version: String
        /// The file that it comes from.
        public let file: String
        /// The version that it takes the place of; nil where none serves.
        public let previous: String?
    }

    /// One line for each thing that is done.
    public var description: String {
        var lines = moved.map { "moves \($0) to the kept versions" }
        if let restored { lines.append("puts back \(restored)") }
        lines += stopping.map { "stops \($0.name) \($0.version): \($0.reason)" }
        lines += starting.map { start in
            if let previous = start.previous {
                "replaces \(start.name) \(previous) by \(start.version) from \(start.file)"
            } else {
                "starts \(start.name) \(start.version) from \(start.file)"
            }
        }
        return lines.joined(separator: "\n")
    }
}

extension PlannedChange {
    /// - Parameters:
    ///   - plan: What is to serve afterwards.
    ///   - served: What serves now, by module.
    init(
        of module: String, moving moved: [String], restoring restored: String?, _ plan: Plan, _ served: [String: Served]
    ) {
        (self.module, self.moved, self.restored) = (module, moved, restored)
        let names = Set(plan.serving.map(\.manifest.name))
        stopping = plan.leaving.reversed().filter { !names.contains($0.name) }.map { leaving in
            let reason = plan.verdicts[leaving.path]?.error?.message ?? "its file goes to the kept versions."
            return Stop(name: leaving.name, version: leaving.version.description, reason: reason)
        }
        starting = plan.serving.filter { $0.served == nil }.map { candidate in
            Start(
                name: candidate.manifest.name, version: candidate.manifest.version.description, file: candidate.path,
                previous: served[candidate.manifest.name]?.version.description)
        }
    }

    /// Other modules that serve and would not, or only in a lower version.
    var dependents: [String] {
        stopping.filter { $0.name != module }.map { "\($0.name) \($0.version)" }
            + starting.filter { start in
                guard start.name != module, let previous = start.previous.flatMap({ SemanticVersion($0) }),
                    let version = SemanticVersion(start.version)
                else { return false }
                return version < previous
            }.map { "\($0.name) \($0.previous!)" }
    }

    /// - Throws: `required`, naming those who depend on what goes, and why.
    func requireNoDependents(_ what: String) throws(PluginError) {
        let dependents = dependents
        guard !dependents.isEmpty else { return }
        let reasons = stopping.filter { $0.name != module }.map(\.reason)
        throw PluginError(
            .required,
            ([
                "\(module) is not \(what): \(dependents.joined(separator: ", ")) "
                    + "\(dependents.count == 1 ? "depends" : "depend") on what is there."
            ] + reasons + ["Change them first, or force it."]).joined(separator: " "))
    }
}
