import CDispatch
import Glibc
import PluginABI
import PluginFile

/// The scan of one file: stages it, opens it, and reads its description. Errors are stored in its record.
struct FileScan {
    let context: ChangeContext

    private var disk: Disk { context.disk }

    /// A file that is opened, but whose entry function, if it is in this process, has not been called yet.
    struct OpenedFile {
        let record: FileRecord
        let staged: StagedFile
        let code: ModuleLoader.OpenedCode
    }

    /// Loads a file again, as if it were new.
    func loadAgain(_ record: FileRecord) {
        let record = FileRecord(path: record.path, folder: record.folder, identity: record.identity)
        if let file = open(record) { finish(file) }
    }

    /// Loads a file again although its content is unchanged, since the module has run and its globals no longer have
    /// their initial values.
    func reload(_ path: String) {
        if let record = context.folders.records[path], let file = open(record, evenIfSame: true) { finish(file) }
    }

    /// Stages and opens a file. Returns `nil` if it failed, or if there is nothing more to do.
    func open(_ record: FileRecord, evenIfSame: Bool = false) -> OpenedFile? {
        context.core.profiler.measure(.loading, record.path) {
            do throws(PluginError) {
                return try stageAndOpen(record, evenIfSame: evenIfSame)
            } catch {
                var status = stat()
                if error.code == .unreadable, lstat(record.path, &status) != 0, errno == ENOENT {
                    // The file was deleted after the folder was read.
                    context.folders.records[record.path] = nil
                } else {
                    context.folders.fail(record, error)
                }
                return nil
            }
        }
    }

    private func stageAndOpen(_ record: FileRecord, evenIfSame: Bool) throws(PluginError) -> OpenedFile? {
        var record = record
        let path = record.path
        try LibraryOpening.requireFree(for: path) { [weak context] in
            context?.later { FileScan(context: $0).openAfterOthers(path) }
        }
        guard let staged = try disk.staging.stage(path: path, checkTrust: !context.configuration.trustsEveryone) else {
            // The file may end up with the content it already has; then nothing is loaded or reported again.
            if let loaded = context.folders.records[path]?.loaded { record.keepModule(loaded, isBeingWritten: true) }
            context.folders.put(record)
            return nil
        }
        if !evenIfSame, var known = knownContent(of: path, staged) {
            disk.staging.discard(staged)
            known.identity = staged.identity
            context.folders.put(known)
            return nil
        }
        if let entry = disk.journal.quarantined(path: path, digest: staged.digest) {
            guard entry.isSuspected == true, case .tried = context.folders.suspects else {
                disk.staging.discard(staged)
                quarantine(record, entry)
                return nil
            }
            context.folders.tried.insert(path)
        }
        do throws(PluginError) {
            let code = try disk.loader.open(staged)
            record.identity = staged.identity
            return OpenedFile(record: record, staged: staged, code: code)
        } catch {
            // A file that the linker could not open is not in the process, so its libraries' names can be used again.
            if error.code == .openFailed { disk.staging.discard(staged) }
            throw error
        }
    }

    /// Opens a file that could not be opened while the constructor of another one was running.
    private func openAfterOthers(_ path: String) {
        guard let record = context.folders.records[path], case .failed = record.content else { return }
        loadAgain(record)
        FolderUpdate(context).run([])
    }

    /// Calls the entry function of an opened file and checks the description. An error is stored in the file's record.
    func finish(_ file: OpenedFile) {
        context.core.profiler.measure(.loading, file.record.path) {
            do throws(PluginError) {
                let module = try disk.loader.load(file.staged, file.code)
                context.folders.put(file.record.with(.module(.init(module: module))))
            } catch {
                context.folders.fail(file.record, error)
            }
        }
    }

    /// Returns the record of a file if its known content is the same as what was staged now: the file was touched,
    /// linked, or written again with the same content.
    private func knownContent(of path: String, _ staged: StagedFile) -> FileRecord? {
        guard var record = context.folders.records[path] else { return nil }
        let served = context.serving.modules.values.first { $0.path.hasBytes(of: path) }
        let candidates = [record.loaded, served.map { FileRecord.Loaded(module: $0.module) }]
        guard let loaded = candidates.compactMap(\.self).first(where: { $0.module.hasContent(of: staged) }) else {
            return nil
        }
        record.keepModule(loaded, isBeingWritten: false)
        return record
    }

    // MARK: Suspects

    private func quarantine(_ record: FileRecord, _ entry: QuarantineEntry) {
        let error = PluginError(
            .quarantined,
            "\(entry.message) The file is not loaded again until it changes or --retry is given.")
        let record = record.with(.quarantined(error))
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
            loadAgain(record)
        }
        FolderUpdate(context).run([])
    }

    /// Ends the quarantine of files that were tried and have not killed the host.
    func releaseTried() {
        for path in context.folders.tried.sorted() { disk.journal.clearSuspicion(path.path) }
        context.folders.tried = []
    }
}
