import CDispatch
import Glibc
import PluginABI
import PluginFile

/// The scan of one file: stages it, opens it, and reads its description. Errors are stored in its record.
struct FileScan {
    let context: ChangeContext

    private var disk: Disk { context.disk }

    /// A file that is not opened yet.
    private struct Staged {
        let record: FileRecord
        let file: StagedFile
        /// The name of the module if the same content was opened before.
        let knownName: String?
        /// The likely name: that of an isolated module which the file has contained so far, or what the file suggests.
        let suggestedName: String
    }

    /// A file that has been opened. If this process has opened it, its entry function has not been called yet.
    struct OpenedFile {
        let record: FileRecord
        let staged: StagedFile
        let code: ModuleLoader.OpenedCode
    }

    /// Loads files again, as if they were new.
    func loadAgain(_ records: [FileRecord]) {
        let records = records.map { FileRecord(path: $0.path, folder: $0.folder, identity: $0.identity) }
        finish(open(records))
    }

    /// Loads a file again although its content is unchanged, since the module has run and its globals no longer have
    /// their initial values.
    func reload(_ path: String) {
        guard let record = context.folders.records[path] else { return }
        finish(open([record], evenIfSame: true))
    }

    /// Opens the files of known modules, since the modules start now.
    func openKnown(_ paths: [String]) {
        let records = paths.compactMap { context.folders.records[$0] }
        finish(open(records, evenIfSame: true))
    }

    /// Stages and opens files. Returns those for which there is more to do. If they are scanned first, all are staged
    /// before the first one is opened.
    func open(_ records: [FileRecord], evenIfSame: Bool = false) -> [OpenedFile] {
        let records = evenIfSame ? records : records.filter { !registers($0) }
        let copies = CopiesAhead(
            records.map(\.path), disk.staging, checkTrust: !context.configuration.trustsEveryone,
            context.core.profiler)
        defer { copies.end() }
        guard let scan = disk.scan else {
            return records.enumerated().compactMap { index, record in
                copies.prepare(index)
                return attempt(record) { () throws(PluginError) in
                    let staged = try stage(record, evenIfSame: evenIfSame, copies, index)
                    return try staged.map { (file) throws(PluginError) in try open(file) }
                }
            }
        }
        let staged = records.enumerated().compactMap { index, record in
            copies.prepare(index)
            return attempt(record) { () throws(PluginError) in
                try stage(record, evenIfSame: evenIfSame, copies, index)
            }
        }
        let scanned = staged.filter { disk.workers.leaveToScan($0.suggestedName, known: $0.knownName) }
        let findings = scan.open(scanned.map(\.file))
        return staged.compactMap { staged in
            attempt(staged.record) { () throws(PluginError) in
                if let failure = findings.failures[staged.file.number] {
                    disk.staging.discard(staged.file)
                    throw failure
                }
                return try open(staged, of: findings.names[staged.file.number])
            }
        }
    }

    /// Performs an operation on a file, and records the error if it fails.
    private func attempt<Result>(
        _ record: FileRecord, _ body: () throws(PluginError) -> Result?
    ) -> Result? {
        context.core.profiler.measure(.loading, record.path) {
            do throws(PluginError) { return try body() } catch {
                var status = stat()
                if error.code == .unreadable, lstat(record.path, &status) != 0, errno == ENOENT {
                    // The file was deleted after the folder was read.
                    context.folders.remove(record.path)
                } else {
                    context.folders.fail(record, error, knownModule(of: record))
                }
                return nil
            }
        }
    }

    /// Registers the module in a file that tells enough about it and need not be copied. Returns false if there is none.
    private func registers(_ record: FileRecord) -> Bool {
        context.core.profiler.measure(.loading, record.path) {
            guard context.folders.records[record.path]?.loaded == nil,
                let module = context.sealedModule(at: record.path)
            else { return false }
            var record = record
            record.identity = module.staged.identity
            context.folders.put(record.with(.module(.init(module: module))))
            return true
        }
    }

    /// Stages a file. Returns `nil` if there is nothing more to do.
    private func stage(
        _ record: FileRecord, evenIfSame: Bool, _ copies: CopiesAhead, _ index: Int
    ) throws(PluginError) -> Staged? {
        var record = record
        let path = record.path
        guard let begun = try copies.take(index),
            var staged = try disk.staging.finish(begun, whenFree: opening(of: path))
        else {
            // The file may end up with the content it already has; then nothing is loaded or reported again.
            if let loaded = context.folders.records[path]?.loaded { record.keepModule(loaded, isBeingWritten: true) }
            context.folders.put(record)
            return nil
        }
        let known = knownContent(of: path, staged)
        // A module that has failed counts, too.
        let module = known?.claimedModule ?? context.folders.records[path]?.claimedModule
        let same = module.flatMap { $0.hasContent(of: staged) ? $0 : nil }
        // What was read from the file is in use for as long as the process lives, however often the module starts.
        if let image = same?.staged.image, image.seal != nil { staged.image = image }
        if !evenIfSame, var known {
            disk.staging.discard(staged)
            known.identity = staged.identity
            context.folders.put(known)
            return nil
        }
        let isSuspected = disk.journal.quarantined(path: path, digest: staged.digest) != nil
        if !evenIfSame, !isSuspected, let module = context.knownModule(in: staged) {
            disk.staging.discard(staged)
            record.identity = staged.identity
            context.folders.put(record.with(.module(.init(module: module))))
            return nil
        }
        if let entry = disk.journal.quarantined(path: path, digest: staged.digest) {
            guard entry.isSuspected == true, case .tried = context.folders.suspects else {
                disk.staging.discard(staged)
                quarantine(record, entry, libraries: staged.libraries)
                return nil
            }
            context.folders.tried.insert(path)
        }
        let suggestedName = module.map(\.outline.name).flatMap { disk.workers.isolates($0) ? $0 : nil }
        return Staged(
            record: record, file: staged, knownName: same?.outline.name,
            suggestedName: suggestedName ?? staged.nameOfModule)
    }

    /// - Parameter name: The name of the module that a scan has found.
    private func open(_ staged: Staged, of name: String? = nil) throws(PluginError) -> OpenedFile {
        do throws(PluginError) {
            context.starts.opened = .init(path: staged.record.path)
            defer { context.starts.opened = nil }
            let code = try disk.loader.open(
                staged.file, of: name ?? staged.knownName, suggested: staged.suggestedName,
                whenFree: opening(of: staged.record.path))
            var record = staged.record
            record.identity = staged.file.identity
            return OpenedFile(record: record, staged: staged.file, code: code)
        } catch {
            // A file that the linker could not open is not in the process, so its libraries' names can be used again.
            if error.code == .openFailed { disk.staging.discard(staged.file) }
            throw error
        }
    }

    /// Returns a function that opens a file when the constructor of another one, which has kept it from being opened,
    /// has returned.
    private func opening(of path: String) -> @Sendable () -> Void {
        { [weak context] in context?.later { FileScan(context: $0).openAfterOthers(path) } }
    }

    /// Opens a file that could not be opened while the constructor of another one was running.
    private func openAfterOthers(_ path: String) {
        guard let record = context.folders.records[path], case .failed = record.content else { return }
        loadAgain([record])
        FolderUpdate(context).run([])
    }

    /// Calls the entry functions of opened files and checks the descriptions. While one is checked, the next function
    /// runs. Errors are stored in the files' records.
    func finish(_ files: [OpenedFile]) {
        var files = files.makeIterator()
        var next = files.next().map { ($0, enter($0)) }
        while let (file, wait) = next {
            let entered = context.core.profiler.measure(.loading, file.record.path, wait)
            next = files.next().map { ($0, enter($0)) }
            finish(file, entered)
        }
        context.starts.opened = nil
    }

    private func enter(_ file: OpenedFile) -> () -> ModuleLoader.Entered {
        context.starts.opened = .init(path: file.record.path)
        return disk.loader.enter(file.staged, file.code)
    }

    private func finish(_ file: OpenedFile, _ entered: ModuleLoader.Entered) {
        context.core.profiler.measure(.loading, file.record.path) {
            do throws(PluginError) {
                let module = try disk.loader.load(file.staged, entered)
                if let known = context.folders.records[file.record.path]?.module, !known.isOpen,
                    known.staged.digest == file.staged.digest, known.name == module.name
                {
                    module.takeOver(known)
                }
                context.folders.put(file.record.with(.module(.init(module: module))))
            } catch {
                context.folders.fail(file.record, error, knownModule(of: file.record))
            }
        }
    }

    /// Returns the module that a file was known to contain, so that callers of its actions receive the error, and the
    /// module can be retried by name.
    private func knownModule(of record: FileRecord) -> LoadedModule? {
        guard let present = context.folders.records[record.path] else { return nil }
        if case .failed(_, let module) = present.content { return present.hasContent(of: record) ? module : nil }
        guard let known = present.module, !known.isOpen else { return nil }
        return known
    }

    /// Returns the record of a file if its known content is the same as what was staged now: the file was touched,
    /// linked, or written again with the same content.
    private func knownContent(of path: String, _ staged: StagedFile) -> FileRecord? {
        guard var record = context.folders.records[path] else { return nil }
        var loaded = record.loaded
        if loaded?.module.hasContent(of: staged) != true {
            let served = context.serving.modules.values.first { $0.path.hasBytes(of: path) }
            loaded = served.map { FileRecord.Loaded(module: $0.module) }
        }
        guard let loaded, loaded.module.hasContent(of: staged) else { return nil }
        record.keepModule(loaded, isBeingWritten: false)
        return record
    }

    // MARK: Suspects

    private func quarantine(_ record: FileRecord, _ entry: QuarantineEntry, libraries: [String]) {
        let error = PluginError(
            .quarantined,
            "\(entry.message) The file is not loaded again until it changes or --retry is given.")
        let record = record.with(.quarantined(error, libraries: libraries))
        context.folders.put(record)
        if entry.isSuspected == true, context.configuration.watches,
            case .deferred(var paths) = context.folders.suspects
        {
            paths.insert(record.path)
            context.folders.suspects = .deferred(paths)
        } else {
            context.folders.tellLater(record)
        }
    }

    /// Tries once more, after all other modules serve, the files that may have killed the last host. If this host dies,
    /// too, they are to blame.
    func trySuspects() {
        guard case .deferred(let paths) = context.folders.suspects else { return }
        context.folders.suspects = .tried
        guard !paths.isEmpty else { return }
        for path in paths.sorted() {
            guard let record = context.folders.records[path], case .quarantined = record.content else { continue }
            loadAgain([record])
        }
        FolderUpdate(context).run([])
    }

    /// Ends the quarantine of files that were tried and have not killed the host, except those that are still starting.
    func releaseTried() {
        let going = Set(context.starts.going.map { PathKey($0.candidate.path) })
        for path in context.folders.tried.subtracting(going).sorted() { disk.journal.clearSuspicion(path.path) }
        context.folders.tried.formIntersection(going)
    }
}

extension LoadedModule {
    /// Returns whether a copy has the content of this module. The module's own copy may have been removed when the
    /// module ended: equal digests are then sufficient, since the file is loaded again before the module runs.
    func hasContent(of copy: StagedFile) -> Bool {
        if !isOpen { return staged.digest == copy.digest && staged.size == copy.size }
        return (try? Staging.sameBytes(staged, copy)) ?? isSpent
    }
}
