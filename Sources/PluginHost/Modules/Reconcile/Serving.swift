import Foundation
import PluginABI
import PluginFile

/// What serves, and who did.
struct Serving: Sendable {
    /// Of files and of what is linked into the program, by module.
    var modules: [String: Served] = [:]
    /// What the program has registered, in that order.
    var program: [Served] = []
    /// The last modules that were removed, and why, for errors.
    private var departed: [(manifest: ModuleManifest, reason: String)] = []

    var all: [Served] { program + modules.values }

    /// Takes what serves from now on.
    mutating func replace(by served: [Served]) {
        program = served.filter(\.module.isRegistered)
        modules = Dictionary(
            served.lazy.filter { !$0.module.isRegistered }.map { ($0.name, $0) },
            uniquingKeysWith: { first, _ in first })
    }

    mutating func noteDeparture(of leaving: Served, _ reason: String) {
        departed.removeAll { $0.manifest.name == leaving.name }
        departed.append((leaving.module.manifest, reason))
        if departed.count > 1000 { departed.removeFirst() }
    }

    /// Who is known and not served, and why.
    ///
    /// - Parameters:
    ///   - served: What serves from now on.
    ///   - records: What the files hold.
    func absences(besides served: [Served], _ records: [PathKey: FileRecord]) -> UnavailableModules {
        let names = Set(served.map(\.name))
        var absences = UnavailableModules()
        for (manifest, reason) in departed where !names.contains(manifest.name) { absences.add(manifest, reason) }
        let refused = records.values.filter { $0.error != nil }.sorted { PathKey($0.path) < PathKey($1.path) }
        for record in refused {
            guard let manifest = record.claimedModule?.manifest, !names.contains(manifest.name),
                let error = record.error
            else { continue }
            absences.add(manifest, error.message)
        }
        return absences
    }
}

/// What serves of a module: a generation, and the file that it came from.
struct Served: Sendable {
    let generation: Generation
    let module: LoadedModule
    /// Follows the file when that is renamed.
    var path: String
    let since: Date

    init(_ generation: Generation, _ module: LoadedModule, path: String, since: Date = Date()) {
        (self.generation, self.module, self.path, self.since) = (generation, module, path, since)
    }

    var name: String { module.manifest.name }
    var version: SemanticVersion { module.manifest.version }
}

extension Served {
    /// Of what goes on although its file is gone: its successor has failed.
    var statusWithoutFile: ModuleStatus {
        var status = ModuleStatus(.active, file: path, since: since, module.manifest, generation)
        status.note = "the file is gone, and what came in its place cannot be served"
        return status
    }
}
