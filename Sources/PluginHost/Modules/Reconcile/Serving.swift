import FoundationEssentials
import PluginABI
import PluginFile

/// The modules that serve, and those that were removed.
struct Serving: Sendable {
    /// The modules from files and those linked into the program, by name.
    var modules: [String: Served] = [:]
    /// The modules that the program has registered, in the order of registration.
    var program: [Served] = []
    /// The modules that were removed most recently, with the reasons, for error messages.
    private var departed: [(module: ModuleOutline, reason: String)] = []

    var all: [Served] { program + modules.values }

    /// Replaces all modules that serve.
    mutating func replace(by served: [Served]) {
        program = served.filter(\.module.isRegistered)
        modules = Dictionary(
            served.lazy.filter { !$0.module.isRegistered }.map { ($0.name, $0) },
            uniquingKeysWith: { first, _ in first })
    }

    mutating func noteDeparture(of leaving: LoadedModule, _ reason: String) {
        departed.removeAll { $0.module.name == leaving.name }
        departed.append((leaving.outline, reason))
        if departed.count > 1000 { departed.removeFirst() }
    }

    /// Returns the known modules that do not serve, with the reasons.
    ///
    /// - Parameters:
    ///   - served: The modules that serve from now on.
    ///   - records: The records of all files.
    func absences(besides served: [Served], _ records: [PathKey: FileRecord]) -> UnavailableModules {
        let refused = records.values.filter { $0.error != nil }.sorted { PathKey($0.path) < PathKey($1.path) }
        var absences = UnavailableModules()
        if departed.isEmpty, refused.isEmpty { return absences }
        let names = Set(served.map(\.name))
        for (module, reason) in departed where !names.contains(module.name) { absences.add(module, reason) }
        for record in refused {
            guard let module = record.claimedModule, !names.contains(module.name), let error = record.error
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
    /// Whether it is to be replaced by another generation of the same file.
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
