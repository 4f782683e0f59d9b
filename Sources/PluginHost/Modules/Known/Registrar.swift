import PluginABI
import PluginFile

/// Creates the modules that are registered instead of opened. May be used on any thread.
final class Registrar: Sendable {
    private let configuration: HostConfiguration
    private let workers: Workers
    private let program: Generation

    init(_ configuration: HostConfiguration, _ workers: Workers, _ program: Generation) {
        (self.configuration, self.workers, self.program) = (configuration, workers, program)
    }

    /// Returns the module in a file; `nil` if the file must be opened.
    ///
    /// - Parameter file: The stand-in for the copy of the file, which does not exist.
    func module(
        in file: StagedFile, _ manifest: KnownManifest, toolchain: String, abiMinor: UInt16
    ) -> LoadedModule? {
        guard hasPermissions(manifest, file), configuration.startsWhenNeeded(manifest.outline),
            let routes = try? routes(of: manifest.outline)
        else { return nil }
        return LoadedModule(
            known: file, toolchain: toolchain, abiMinor: abiMinor, manifest: manifest, routes: routes,
            program: program)
    }

    /// Returns the record of a file that an earlier host has read; `nil` if the file must be read again.
    func record(of file: KnownFile, in folder: String) -> FileRecord? {
        let content: FileRecord.Content
        switch file.outcome {
        case .failure(let error): content = .failed(error, nil)
        case .module(let facts):
            let staged = StagedFile(
                path: "", original: file.path, identity: file.identity, digest: file.digest,
                size: Int(file.identity.size), image: .program, folder: nil, libraries: facts.libraries.map(\.path))
            let manifest = KnownManifest(facts.manifest, facts.index, abiMinor: facts.abi.minor)
            let module = manifest.flatMap {
                self.module(in: staged, $0, toolchain: facts.toolchain, abiMinor: facts.abi.minor)
            }
            guard let module else { return nil }
            content = .module(.init(module: module))
        }
        return FileRecord(path: file.path, folder: folder, identity: file.identity, content: content)
    }

    /// Returns the plugins folder that contains a path; `nil` if there is none.
    func folder(of path: String) -> String? {
        configuration.folders.first { path.beginsWithBytes(of: $0.pathOfItem("")) }
    }

    private func routes(of outline: ModuleOutline) throws(PluginError) -> [RouteEntry] {
        outline.routes.isEmpty ? [] : try outline.routeEntries(scheme: configuration.firstScheme)
    }

    /// Whether a module has what it needs to be served. If not, its file is opened, and the module then waits.
    private func hasPermissions(_ known: KnownManifest, _ file: StagedFile) -> Bool {
        let outline = known.outline
        guard workers.isolates(outline.name) else { return outline.isolation == .optional }
        guard outline.hasPermissions else { return true }
        let rule = workers.rule(for: outline.name, file)
        return known.manifest.permissions.allSatisfy { rule.grants($0) }
    }
}

extension HostConfiguration {
    /// Whether a module that is known starts only when it is needed.
    func startsWhenNeeded(_ outline: ModuleOutline) -> Bool {
        guard start == .lazy, !eagerModules.contains(outline.name) else { return false }
        switch outline.start {
        case .eager: return false
        case .lazy: return true
        case .automatic:
            return !outline.isExclusive && !outline.hasStartHooks && !outline.events.contains(where: \.isHostEvent)
        }
    }
}
