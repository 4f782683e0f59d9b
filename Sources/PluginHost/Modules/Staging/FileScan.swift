import CDispatch
import CPluginABI
import Glibc
import PluginABI
import PluginFile

/// Takes a file into the process: stages it, opens it, and asks it what it is. What goes wrong stands in its record.
struct FileScan {
    let context: ChangeContext

    private var disk: Disk { context.disk }

    /// A file that is in the process, and has not been asked yet what it is.
    struct OpenedFile {
        let record: FileRecord
        let staged: StagedFile
        let entry: plugin_module_entry_function
    }

    /// Loads a file once more, as if it had come anew.
    func loadAgain(_ record: FileRecord) {
        let record = FileRecord(path: record.path, folder: record.folder, identity: record.identity)
        if let file = open(record) { finish(file) }
    }

    /// Loads what a file holds once more, since the globals of a module that ran before are not new any more.
    func reload(_ path: String) {
        if let record = context.folders.records[path], let file = open(record, evenIfSame: true) { finish(file) }
    }

    /// Stages and opens a file. Nil when there is nothing more to be done, or something has gone wrong.
    func open(_ record: FileRecord, evenIfSame: Bool = false) -> OpenedFile? {
        context.core.profiler.measure(.loading, record.path) {
            do throws(PluginError) {
                return try stageAndOpen(record, evenIfSame: evenIfSame)
            } catch {
                var status = stat()
                if error.code == .unreadable, lstat(record.path, &status) != 0, errno == ENOENT {
                    // Deleted since the folder was read: as if it had never been there.
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
        guard
            case .staged(let staged) = try disk.staging.stage(
                path: path, checkTrust: !context.configuration.trustsEveryone)
        else {
            // It may be written with what it holds already, or not at all: then nothing is loaded, or told, again.
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
            let entry = try disk.loader.open(staged)
            record.identity = staged.identity
            return OpenedFile(record: record, staged: staged, entry: entry)
        } catch {
            // What the linker has refused is not in the process, and claims no names of libraries.
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

    /// Asks an opened file what it is, and checks the answer; what goes wrong stands in its record.
    func finish(_ file: OpenedFile) {
        context.core.profiler.measure(.loading, file.record.path) {
            do throws(PluginError) {
                let module = try disk.loader.load(file.staged, entry: file.entry)
                context.folders.put(file.record.with(.module(.init(module: module))))
            } catch {
                context.folders.fail(file.record, error)
            }
        }
    }

    /// What a file holds, if that is what was staged now: touched, linked, or written again with the same content.
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

    // MARK: What may have killed the last host

    private func quarantine(_ record: FileRecord, _ entry: QuarantineEntry) {
        let error = PluginError(
            .quarantined,
            "\(entry.message) It is not loaded again until it changes, or --retry is given.")
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

    /// Tries once more what may have killed the last host, after everything else: it is to blame if this one dies, too.
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

    /// Ends the quarantine of what was tried and has not killed the host.
    func releaseTried() {
        for path in context.folders.tried.sorted() { disk.journal.clearSuspicion(path.path) }
        context.folders.tried = []
    }
}
