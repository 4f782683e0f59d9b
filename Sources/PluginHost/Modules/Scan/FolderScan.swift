import PluginABI
import PluginFile

/// A scan of plugins folders: compares them with the records, and loads files that are new or have changed.
struct FolderScan {
    let context: ChangeContext
    /// Whether files that failed for lack of a resource are tried again.
    let retriesFailures: Bool

    private var configuration: HostConfiguration { context.configuration }

    /// Scans one folder.
    ///
    /// If the folder cannot be read, its files count as unchanged.
    func look(into folder: String) {
        let all: [PluginFolder.Entry]
        do throws(PluginError) { all = try list(folder) } catch {
            return context.reportProblem(error, folder)
        }
        context.folders.problems[folder] = nil
        var (entries, declarations): ([PluginFolder.Entry], [PluginFolder.Entry]) = ([], [])
        for entry in all {
            if !entry.name.hasSuffix(".so"), DeclarationFile.isNamed(entry.name) {
                declarations.append(entry)
            } else {
                entries.append(entry)
            }
        }
        DeclarationScan(context: context).look(at: declarations, in: folder)
        let before = context.folders.records
        context.folders.forget(
            in: folder, besides: Set(paths: entries.map(\.path)),
            unread: entries.filter(\.isFolder).map { $0.path + "/" })
        // All files are opened before the first entry function is called. Whenever a library is opened, the Swift
        // runtime discards its cache of protocol conformances and searches all libraries again. If opening and calling
        // alternated, the start time would grow with the square of the number of modules.
        let intake = FileScan(context: context)
        for file in intake.open(entries.compactMap { due($0, in: folder) }) { intake.finish(file) }
        if entries.contains(where: { before[$0.path]?.identity != (try? $0.identity.get()) }) {
            retryLacking(before.values.filter { $0.folder.hasBytes(of: folder) }, intake)
        }
    }

    private func list(_ folder: String) throws(PluginError) -> [PluginFolder.Entry] {
        try context.core.profiler.measure(.discovery, folder) { () throws(PluginError) in
            let all = try PluginFolder.list(
                folder, includesSubfolders: configuration.includesSubfolders,
                checksTrust: !configuration.trustsEveryone)
            if !configuration.trustsEveryone { try Trust.check(folder: folder) }
            return configuration.takesFile.map { takes in all.filter { takes($0.path) } } ?? all
        }
    }

    /// Returns the record of a file that is to be opened, because it is new or has changed.
    private func due(_ entry: PluginFolder.Entry, in folder: String) -> FileRecord? {
        switch entry.identity {
        case .failure(let error):
            context.folders.fail(FileRecord(path: entry.path, folder: folder, identity: nil), error)
            return nil
        case .success(let identity):
            if let known = context.folders.records[entry.path], known.identity == identity, !known.isAwaited,
                !known.isFleeting, !(known.canPass && retriesFailures)
            {
                return nil
            }
            if let known = context.knownRecord(entry.path, in: folder, identity) {
                if case .failed(let error, nil) = known.content {
                    context.folders.fail(known, error)
                } else {
                    context.folders.put(known)
                }
                return nil
            }
            return FileRecord(path: entry.path, folder: folder, identity: identity)
        }
    }

    /// Retries files that the dynamic linker could not open before: what they lacked may have been added.
    private func retryLacking(_ files: [FileRecord], _ intake: FileScan) {
        let lacking = files.filter { file in
            guard case .failed(let error, _) = file.content, error.code == .openFailed,
                case .failed(error, _)? = context.folders.records[file.path]?.content
            else { return false }
            return true
        }
        intake.loadAgain(lacking)
    }

    /// Undoes changes in the folders that a host had begun when it was killed.
    static func recover(_ context: ChangeContext) {
        let configuration = context.configuration
        for root in configuration.folders {
            var walk = FolderWalk(root, includesSubfolders: configuration.includesSubfolders)
            while let folder = walk.next() {
                do throws(PluginError) {
                    if !configuration.trustsEveryone { try Trust.check(folder: folder.path) }
                    try UndoFile.recover(in: folder.path.withoutLinks)
                } catch {
                    // An untrusted folder is reported when it is scanned.
                    if error.code != .untrusted { context.reportProblem(error, "\(folder.path) (left behind)") }
                }
                if configuration.includesSubfolders { _ = try? walk.read(folder) }
            }
        }
    }
}
