import PluginABI
import PluginFile

/// The host's record of one route file or service file.
struct DeclarationRecord: Sendable {
    let folder: String
    /// The identity of the content that was read last; `nil` if the file could not be examined.
    var identity: FileIdentity?
    var state = State.taken
    /// The content of the file when it was last read successfully; `nil` before that. It stays in effect while the file
    /// is invalid.
    var content: Content?
    /// Whether `content` is not in the registry yet.
    var isNew = false

    enum State: Sendable {
        /// `content` is the content of the file.
        case taken
        /// The file is being written and must be scanned again.
        case awaited
        case failed(PluginError)
    }

    var isAwaited: Bool { if case .awaited = state { true } else { false } }

    /// The reason why the current content of the file is not accepted.
    var problem: PluginError? { if case .failed(let error) = state { error } else { nil } }

    enum Content: Sendable {
        case routes([RouteEntry])
        case services([ModuleManifest.Service])

        /// - Parameter scheme: The scheme of patterns that are written without one; `nil` if they are refused.
        /// - Throws: `invalidRouteFile`, `invalidServiceFile`.
        init(parsing bytes: [UInt8], path: String, scheme: String?) throws(PluginError) {
            self =
                ServiceFile.isNamed(path)
                ? .services(try ServiceFile.parse(bytes, path: path))
                : .routes(try RouteFile.entries(bytes, path: path, scheme: scheme))
        }
    }
}

/// A scan of route files and service files, which brings their content into the registry.
struct DeclarationScan {
    let context: ChangeContext

    /// Reads the files of a folder that are new or have changed.
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
        try DeclarationFile.checkFormat(of: path)
        let file = try SourceFile(opening: path)
        record.identity = file.identity
        if !context.configuration.trustsEveryone { try file.checkTrust() }
        record.state = .awaited
        if file.isBeingWritten() { return }
        let bytes = try file.contents(limit: DeclarationFile.sizeLimit)
        if bytes.count != file.identity.size || file.hasChanged() { return }
        record.content = try DeclarationRecord.Content(
            parsing: bytes, path: path, scheme: context.configuration.firstScheme)
        (record.state, record.isNew) = (.taken, true)
    }

    /// Adds the content of files that were read to the registry, and removes that of files that no longer exist.
    func reconcile() {
        let files = context.folders.declarations
        for path in files.keys { context.folders.declarations[path]?.isNew = false }
        let table = context.registry.table
        let gone = (Array(table.routes.files.keys) + table.declaredServices.files.keys).filter { files[$0] == nil }
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
            var (routes, services) = (table.routes, table.declaredServices)
            for (path, content) in changes.map({ ($0.key.path, $0.value) }) {
                switch content {
                case .routes(let entries): routes.set(entries, ofFile: path)
                case .services(let declared): services.files[path] = declared
                case nil:
                    routes.set(nil, ofFile: path)
                    services.files[path] = nil
                }
            }
            routes.rebuild(table.routeOwners)
            return table.changed { ($0.routes, $0.declaredServices) = (routes, services) }
        }
    }
}

extension FolderContents {
    /// Returns why routes and services of files are not in effect, sorted by path: errors of files that cannot be read,
    /// and routes and services that are displaced by others.
    func declarationProblems(_ table: Table) -> [(key: PathKey, error: PluginError)] {
        let broken = declarations.compactMap { path, file in file.problem.map { (path, $0) } }
        let refused = (Array(table.routes.refused) + table.refusedServices).map {
            (PathKey("\($0.key.path) (displaced)"), $0.value)
        }
        return (broken + refused).sorted { $0.0 < $1.0 }.map { (key: $0.0, error: $0.1) }
    }
}
