import PluginABI
import PluginFile
import Synchronization

// Files of routes and services: what is there, what has changed, and what of it stands.

/// What the host knows of one such file.
struct DeclarationRecord: Sendable {
    let folder: String
    /// The content that was looked at last; nil when the file could not even be looked at.
    var identity: FileIdentity?
    var state = State.taken
    /// What it said when it could last be read; nil before that. It goes on while the file is broken.
    var content: Content?
    /// Whether `content` is to be brought into the registry.
    var isNew = false

    enum State: Sendable {
        /// `content` is what the file says.
        case taken
        /// Somebody writes it, so that it has to be looked at again.
        case awaited
        case failed(PluginError)
    }

    var isAwaited: Bool { if case .awaited = state { true } else { false } }

    /// Why its present content is not taken.
    var problem: PluginError? { if case .failed(let error) = state { error } else { nil } }

    enum Content: Sendable {
        case routes([RouteEntry])
        case services([ModuleManifest.Service])

        /// - Throws: `invalidRouteFile`, `invalidServiceFile`.
        init(parsing bytes: [UInt8], path: String) throws(PluginError) {
            self =
                ServiceFile.isNamed(path)
                ? .services(try ServiceFile.parse(bytes, path: path))
                : .routes(try RouteFile.entries(bytes, path: path))
        }
    }
}

/// Takes what files of routes and services say.
struct DeclarationScan {
    let context: ChangeContext

    /// Reads those files of a folder that are new or have changed.
    func look(at entries: [PluginFolder.Entry], in folder: String) {
        let paths = Set(paths: entries.map(\.path))
        context.folders.declarations = context.folders.declarations.filter {
            !$0.value.folder.hasBytes(of: folder) || paths.contains($0.key)
        }
        for entry in entries {
            var record = context.folders.declarations[entry.path] ?? DeclarationRecord(folder: folder)
            switch entry.identity {
            case .failure(let error): (record.identity, record.state) = (nil, .failed(error))
            case .success(let identity):
                if record.identity == identity, !record.isAwaited, record.problem?.canPass != true { continue }
                do throws(PluginError) { try read(entry.path, into: &record) } catch { record.state = .failed(error) }
            }
            context.folders.declarations[entry.path] = record
        }
    }

    private func read(_ path: String, into record: inout DeclarationRecord) throws(PluginError) {
        let file = try SourceFile(opening: path)
        record.identity = file.identity
        if !context.configuration.trustsEveryone { try file.checkTrust() }
        record.state = .awaited
        if file.isBeingWritten() { return }
        let bytes = try file.contents(limit: DeclarationFile.sizeLimit)
        if bytes.count != file.identity.size || file.hasChanged() { return }
        record.content = try DeclarationRecord.Content(parsing: bytes, path: path)
        (record.state, record.isNew) = (.taken, true)
    }

    /// Brings into the registry what has been read, and takes out what is gone.
    func reconcile() {
        let files = context.folders.declarations
        for path in files.keys { context.folders.declarations[path]?.isNew = false }
        let table = context.registry.table
        let gone = (Array(table.routes.files.keys) + table.serviceFiles.files.keys).filter { files[$0] == nil }
        let new = files.filter(\.value.isNew).mapValues(\.content)
        let changes = new.merging(gone.map { ($0, nil) }) { $1 }
        if !changes.isEmpty { bring(changes) }
        for (path, content) in changes.sorted(by: { $0.key < $1.key }).map({ ($0.key.path, $0.value) }) {
            switch content {
            case .routes(let routes): context.tell(.routesChanged(path, routes.count))
            case .services(let services): context.tell(.servicesChanged(path, services.count))
            case nil: context.tell(ServiceFile.isNamed(path) ? .servicesChanged(path, 0) : .routesChanged(path, 0))
            }
        }
        context.publish()
        context.tellDeclarationProblems()
    }

    private func bring(_ changes: [PathKey: DeclarationRecord.Content?]) {
        try? context.registry.update { table in
            var (routes, services) = (table.routes, table.serviceFiles)
            for (path, content) in changes.map({ ($0.key.path, $0.value) }) {
                switch content {
                case .routes(let entries): routes.set(entries, ofFile: path)
                case .services(let declared): services.files[path] = declared
                case nil:
                    routes.set(nil, ofFile: path)
                    services.files[path] = nil
                }
            }
            routes.rebuild(table.generations)
            return table.changed { ($0.routes, $0.serviceFiles) = (routes, services) }
        }
    }
}

extension FolderContents {
    /// Why routes and services of files do not stand, by path: first why a file cannot be read, then which ones others
    /// displace; each in order of the paths.
    func declarationProblems(_ table: Table) -> [(key: PathKey, error: PluginError)] {
        let broken = declarations.compactMap { path, file in file.problem.map { (path, $0) } }
        let refused = (Array(table.routes.refused) + table.refusedServiceFiles).map {
            (PathKey("\($0.key.path) (displaced)"), $0.value)
        }
        return (broken + refused).sorted { $0.0 < $1.0 }.map { (key: $0.0, error: $0.1) }
    }
}
