import PluginABI
import PluginFile
import Synchronization

// Files of routes and services: what is there, what has changed, and what of it stands. Runs on the lifecycle queue.

/// What the host knows of one such file.
struct DeclarationRecord {
    let folder: String
    /// The content that was looked at last; nil when the file could not even be looked at.
    var identity: FileIdentity?
    /// What it said when it could last be read; nil before that. It goes on while the file is broken.
    var content: Content?
    /// Why its present content is not taken.
    var problem: PluginError?
    /// Whether somebody writes it, so that it has to be looked at again.
    var isAwaited = false
    /// Whether `content` is to be brought into the registry.
    var isNew = false

    enum Content {
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

extension Lifecycle {
    /// Reads those files of a folder that are new or have changed.
    func look(atDeclarations entries: [PluginFolder.Entry], in folder: String) {
        let paths = Set(paths: entries.map(\.path))
        state.withLock { state in
            state.declarations = state.declarations.filter {
                !$0.value.folder.hasBytes(of: folder) || paths.contains($0.key)
            }
        }
        for entry in entries {
            var record = state.withLock { $0.declarations[entry.path] } ?? DeclarationRecord(folder: folder)
            switch entry.identity {
            case .failure(let error): (record.identity, record.problem, record.isAwaited) = (nil, error, false)
            case .success(let identity):
                if record.identity == identity, !record.isAwaited, record.problem?.canPass != true { continue }
                read(entry.path, into: &record)
            }
            state.withLock { $0.declarations[entry.path] = record }
        }
    }

    private func read(_ path: String, into record: inout DeclarationRecord) {
        do throws(PluginError) {
            let file = try SourceFile(opening: path)
            record.identity = file.identity
            if !configuration.trustsEveryone { try file.checkTrust() }
            record.isAwaited = file.isBeingWritten()
            if record.isAwaited { return }
            let bytes = try file.contents(limit: DeclarationFile.sizeLimit)
            record.isAwaited = bytes.count != file.identity.size || file.hasChanged()
            if record.isAwaited { return }
            record.content = try DeclarationRecord.Content(parsing: bytes, path: path)
            (record.problem, record.isNew) = (nil, true)
        } catch {
            (record.problem, record.isAwaited) = (error, false)
        }
    }

    /// Brings into the registry what has been read, and takes out what is gone.
    func settleDeclarations() {
        let files = state.withLock { state in
            defer { for path in state.declarations.keys { state.declarations[path]?.isNew = false } }
            return state.declarations
        }
        let table = calls.registry.table
        let gone = (Array(table.routes.files.keys) + table.serviceFiles.files.keys).filter { files[$0] == nil }
        let new = files.filter(\.value.isNew).mapValues(\.content)
        let changes = new.merging(gone.map { ($0, nil) }) { $1 }
        if !changes.isEmpty { bring(changes) }
        for (path, content) in changes.sorted(by: { $0.key < $1.key }).map({ ($0.key.path, $0.value) }) {
            switch content {
            case .routes(let routes): tell(.routesChanged(path, routes.count))
            case .services(let services): tell(.servicesChanged(path, services.count))
            case nil: tell(ServiceFile.isNamed(path) ? .servicesChanged(path, 0) : .routesChanged(path, 0))
            }
        }
        tellDeclarationProblems()
    }

    private func bring(_ changes: [PathKey: DeclarationRecord.Content?]) {
        try? calls.registry.update { table in
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

    /// Tells why routes and services of files do not stand, each reason once. Called after every change of them, from
    /// any thread.
    func tellDeclarationProblems() {
        let present = allDeclarationProblems
        let news = state.withLock { state in
            defer { state.toldDeclarationProblems = Dictionary(present, uniquingKeysWith: { $1 }) }
            return present.filter { state.toldDeclarationProblems[$0.key] != $0.error }
        }
        for problem in news { tell(.problem(problem.error)) }
    }

    /// Why routes and services of files do not stand, by path.
    var declarationProblems: [PluginError] { allDeclarationProblems.map(\.error) }

    /// First why a file cannot be read, then which ones others displace; each in order of the paths.
    private var allDeclarationProblems: [(key: PathKey, error: PluginError)] {
        let broken = state.withLock { $0.declarations.compactMap { path, file in file.problem.map { (path, $0) } } }
        let table = calls.registry.table
        let refused = (Array(table.routes.refused) + table.refusedServiceFiles).map {
            (PathKey("\($0.key.path) (displaced)"), $0.value)
        }
        return (broken + refused).sorted { $0.0 < $1.0 }.map { (key: $0.0, error: $0.1) }
    }

    var foldersOfAwaitedDeclarations: [String] {
        state.withLock { $0.declarations.values.filter(\.isAwaited).map(\.folder) }
    }
}
