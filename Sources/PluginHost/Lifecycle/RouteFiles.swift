import PluginABI
import Synchronization

// Route files: what is there, what has changed, and what of it stands. Runs on the lifecycle queue.

/// What the host knows of one route file.
struct RouteFileRecord {
    let folder: String
    /// The content that was looked at last; nil when the file could not even be looked at.
    var identity: FileIdentity?
    /// What it said when it could last be read; nil before that. It goes on while the file is broken.
    var routes: [RouteEntry]?
    /// Why its present content is not taken.
    var problem: PluginError?
    /// Whether somebody writes it, so that it has to be looked at again.
    var isAwaited = false
    /// Whether `routes` are to be brought into the registry.
    var isNew = false
}

extension Lifecycle {
    /// Reads those files of a folder that are new or have changed.
    func look(atRouteFiles entries: [PluginFolder.Entry], in folder: String) {
        let paths = Set(entries.map(\.path))
        state.withLock { state in
            state.routeFiles = state.routeFiles.filter { $0.value.folder != folder || paths.contains($0.key) }
        }
        for entry in entries {
            var record = state.withLock { $0.routeFiles[entry.path] } ?? RouteFileRecord(folder: folder)
            switch entry.identity {
            case .failure(let error): (record.identity, record.problem, record.isAwaited) = (nil, error, false)
            case .success(let identity):
                if record.identity == identity, !record.isAwaited { continue }
                read(entry.path, into: &record)
            }
            state.withLock { $0.routeFiles[entry.path] = record }
        }
    }

    private func read(_ path: String, into record: inout RouteFileRecord) {
        do throws(PluginError) {
            let file = try SourceFile(opening: path)
            record.identity = file.identity
            if !configuration.trustsEveryone { try file.checkTrust() }
            record.isAwaited = file.isBeingWritten()
            if record.isAwaited { return }
            let bytes = try file.contents(limit: RouteFile.sizeLimit)
            record.isAwaited = bytes.count != file.identity.size || file.hasChanged()
            if record.isAwaited { return }
            record.routes = try RouteFile.parse(bytes, path: path)
            (record.problem, record.isNew) = (nil, true)
        } catch {
            (record.problem, record.isAwaited) = (error, false)
        }
    }

    /// Brings into the registry what has been read, and takes out what is gone.
    func settleRouteFiles() {
        let files = state.withLock { state in
            defer { for path in state.routeFiles.keys { state.routeFiles[path]?.isNew = false } }
            return state.routeFiles
        }
        let new = files.filter(\.value.isNew)
        let gone = dispatcher.registry.table.routes.files.keys.filter { files[$0] == nil }
        if !new.isEmpty || !gone.isEmpty {
            try? dispatcher.registry.update { table in
                var routes = table.routes
                for (path, file) in new { routes.set(file.routes, ofFile: path) }
                for path in gone { routes.set(nil, ofFile: path) }
                return table.with(routes)
            }
        }
        for (path, file) in new.sorted(by: { $0.key < $1.key }) { tell(.routesChanged(path, file.routes?.count ?? 0)) }
        for path in gone.sorted() { tell(.routesChanged(path, 0)) }
        tellRouteProblems()
    }

    /// Tells why routes of files do not stand, each reason once. Called after every change of routes, from any thread.
    func tellRouteProblems() {
        let present = allRouteProblems
        let news = state.withLock { state in
            defer { state.toldRouteProblems = Dictionary(present, uniquingKeysWith: { $1 }) }
            return present.filter { state.toldRouteProblems[$0.key] != $0.error }
        }
        for problem in news { tell(.problem(problem.error)) }
    }

    /// Why routes of files do not stand, by path.
    var routeProblems: [PluginError] { allRouteProblems.map(\.error) }

    /// First why a file cannot be read, then which ones others displace; each in order of the paths.
    private var allRouteProblems: [(key: String, error: PluginError)] {
        let broken = state.withLock { $0.routeFiles.compactMap { path, file in file.problem.map { (path, $0) } } }
        let refused = dispatcher.registry.table.refusedRouteFiles.map { ("\($0.key) (routes)", $0.value) }
        return (broken + refused).sorted { $0.0 < $1.0 }.map { (key: $0.0, error: $0.1) }
    }

    var foldersOfAwaitedRouteFiles: [String] {
        state.withLock { $0.routeFiles.values.filter(\.isAwaited).map(\.folder) }
    }
}
