import FoundationEssentials
import PluginABI
import PluginFile

/// The modules that serve, and those that were removed.
struct Serving: Sendable {
    /// The modules from files and those linked into the program, by name.
    var modules = BucketMap<String, Served>()
    /// The modules that the program has registered, in the order of registration.
    var program: [Served] = []
    /// The modules that were removed most recently, with the reasons, for error messages.
    private var departed: [(module: ModuleOutline, reason: String)] = []

    var all: [Served] { modules.isEmpty ? program : program + modules.values }

    var isEmpty: Bool { program.isEmpty && modules.isEmpty }

    func contains(_ name: String) -> Bool { modules[name] != nil || program.contains { $0.name == name } }

    /// Replaces modules that serve.
    ///
    /// - Parameter names: The names of the modules that stop serving unless they are among `served`; `nil` for all.
    mutating func replace(by served: [Served], among names: Set<String>? = nil) {
        if let names {
            for name in names where modules[name] != nil { modules[name] = nil }
            for served in served where !served.module.isRegistered { modules[served.name] = served }
            return
        }
        program = served.filter(\.module.isRegistered)
        modules = BucketMap(served.lazy.filter { !$0.module.isRegistered }.map { ($0.name, $0) })
    }

    mutating func noteDeparture(of leaving: LoadedModule, _ reason: String) {
        departed.removeAll { $0.module.name == leaving.name }
        departed.append((leaving.outline, reason))
        if departed.count > 1000 { departed.removeFirst() }
    }

    /// Returns the known modules that do not serve, with the reasons.
    ///
    /// - Parameters:
    ///   - serves: Whether a module serves from now on.
    ///   - refused: The records of the files that are not served.
    func absences(unless serves: (String) -> Bool, _ refused: [FileRecord]) -> UnavailableModules {
        let refused = refused.sorted { PathKey($0.path) < PathKey($1.path) }
        var absences = UnavailableModules()
        for (module, reason) in departed where !serves(module.name) { absences.add(module, reason) }
        for record in refused {
            guard let module = record.claimedModule, !serves(module.name), let error = record.error
            else { continue }
            absences.add(module.outline, error.message)
        }
        return absences
    }
}

/// The generation of a module that serves, and the file that it was loaded from.
struct Served: Sendable {
    let generation: Generation
    let module: LoadedModule
    /// The path of the file; updated when the file is renamed.
    var path: String
    let since: Date
    /// Whether the generation is to be replaced by another one from the same file.
    var isRestarting = false

    init(_ generation: Generation, _ module: LoadedModule, path: String, since: Date = Date()) {
        (self.generation, self.module, self.path, self.since) = (generation, module, path, since)
    }

    /// Returns whether another generation of the same file has replaced it.
    func isRestart(to next: Served) -> Bool {
        (isRestarting || module.hasEnded) && Plan.isSame(module, next.module)
    }

    var name: String { module.name }
    var version: SemanticVersion { module.outline.version }

    /// The status of a module whose file no longer exists, and which continues to serve because its successor has
    /// failed.
    var statusWithoutFile: ModuleStatus {
        var status = ModuleStatus(.active, file: path, since: since, module.outline, generation)
        status.note = "the file is gone, and its replacement cannot be served"
        return status
    }
}
