import PluginABI
import PluginFile

/// A scan of plugins folders: compares them with the records, and loads files that are new or have changed.
struct FolderScan {
    let context: ChangeContext
    /// Whether files that failed for lack of a resource are tried again.
    let retriesFailures: Bool

    private var configuration: HostConfiguration { context.configuration }

    /// Scans one folder, or files of it.
    ///
    /// If the folder cannot be read, its files count as unchanged.
    ///
    /// - Parameter files: The paths of the files that may have changed; `nil` if any may have.
    func look(into folder: String, at files: Set<PathKey>? = nil) {
        if let files, let entries = entries(at: files, in: folder) {
            let present = Set(paths: entries.map(\.path))
            return take(entries, in: folder) {
                for path in files.subtracting(present) { context.folders.remove(path.path) }
            }
        }
        let all: [PluginFolder.Entry]
        do throws(PluginError) { all = try list(folder) } catch {
            return context.reportProblem(error, folder)
        }
        context.examined.files += all.count
        context.folders.problems[folder] = nil
        let isDeclaration = { (entry: PluginFolder.Entry) in
            !entry.name.hasSuffix(".so") && DeclarationFile.isNamed(entry.name)
        }
        let declarations = all.filter(isDeclaration)
        let entries = declarations.isEmpty ? all : all.filter { !isDeclaration($0) }
        DeclarationScan(context: context).look(at: declarations, in: folder)
        take(entries, in: folder) {
            guard !context.folders.records.isEmpty else { return }
            context.folders.forget(
                in: folder, besides: Set(paths: entries.map(\.path)),
                unread: entries.filter(\.isFolder).map { $0.path + "/" })
        }
    }

    /// Loads the files that are new or have changed.
    ///
    /// - Parameter forget: Removes the records of files that no longer exist.
    private func take(_ entries: [PluginFolder.Entry], in folder: String, forgetting forget: () -> Void) {
        let failed = context.folders.unsettledRecords.filter { $0.isLacking && $0.folder.hasBytes(of: folder) }
        let hasChanges = entries.contains { entry in
            context.folders.records[entry.path]?.identity != (try? entry.identity.get())
        }
        forget()
        // All files are opened before the first entry function is called. Whenever a library is opened, the Swift
        // runtime discards its cache of protocol conformances and searches all libraries again. If opening and calling
        // alternated, the start time would grow with the square of the number of modules.
        context.folders.reserveCapacity(entries.count)
        let intake = FileScan(context: context)
        let files = entries.compactMap { due($0, in: folder) }
        if !files.isEmpty { FirstUses.make(context.hooks) }
        intake.finish(intake.open(files))
        if hasChanges { retryLacking(failed, intake) }
    }

    /// Returns the entries of files, sorted by name, without those that no longer exist; `nil` if the whole folder must
    /// be scanned: it has or had a problem, one of the files declares routes or services, or one is in a subfolder and
    /// is not a regular file.
    private func entries(at files: Set<PathKey>, in folder: String) -> [PluginFolder.Entry]? {
        guard context.folders.problems[folder] == nil else { return nil }
        return context.core.profiler.measure(.discovery, folder) {
            var entries: [PluginFolder.Entry] = []
            for path in files.sorted().map(\.path) {
                guard let name = path.nameOfItem(in: folder), path.hasSuffix(".so") else { return nil }
                if configuration.takesFile?(path) == false { continue }
                context.examined.files += 1
                switch PluginFolder.entry(name, path, mayBeFolder: !configuration.includesSubfolders) {
                case .present(let entry): entries.append(entry)
                case .absent: continue
                case .unclear: return nil
                }
            }
            guard !configuration.trustsEveryone else { return entries }
            for folder in folders(to: files, in: folder) {
                do throws(PluginError) { try Trust.check(folder: folder) } catch { return nil }
            }
            return entries
        }
    }

    /// Returns the paths of a folder and of the subfolders on the way to files in it.
    private func folders(to files: Set<PathKey>, in root: String) -> Set<String> {
        var folders: Set<String> = [root]
        for file in files {
            var folder = file.path.folderOfItem
            while folder.utf8.count > root.utf8.count, folders.insert(folder).inserted { folder = folder.folderOfItem }
        }
        return folders
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
            guard case .failed(let error, _) = file.content,
                case .failed(error, _)? = context.folders.records[file.path]?.content
            else { return false }
            return true
        }
        intake.loadAgain(lacking.sorted { PathKey($0.path) < PathKey($1.path) })
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

extension FileRecord {
    /// Whether the dynamic linker could not open the file.
    fileprivate var isLacking: Bool {
        if case .failed(let error, _) = content { error.code == .openFailed } else { false }
    }
}

extension String {
    /// The name of an item in a plugins folder: its path without that of the folder; `nil` if it is not in the folder.
    fileprivate func nameOfItem(in folder: String) -> String? {
        let start = folder.pathOfItem("")
        return beginsWithBytes(of: start) ? String(decoding: utf8.dropFirst(start.utf8.count), as: UTF8.self) : nil
    }

    /// The path of the folder that contains the item at this path.
    fileprivate var folderOfItem: String {
        let end = utf8.lastIndex(of: UInt8(ascii: "/")) ?? utf8.startIndex
        return end == utf8.startIndex ? "/" : String(decoding: utf8[..<end], as: UTF8.self)
    }
}
