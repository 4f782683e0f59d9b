import CPluginABI
import Foundation
import PluginABI
import PluginFile
import Synchronization

// From a folder to loaded modules: what is there, what is new, what has changed. Runs on the lifecycle queue.

extension Lifecycle {
    /// Compares a folder with the records, and loads what is new or has changed.
    ///
    /// A folder that cannot be read says nothing about what is in it: everything goes on as it is.
    func look(into folder: String) {
        let entries: [PluginFolder.Entry]
        do throws(PluginError) {
            let all = try core.profiler.measure(.discovery, folder) { () throws(PluginError) in
                let all = try PluginFolder.list(
                    folder, includesSubfolders: configuration.includesSubfolders,
                    checksTrust: !configuration.trustsEveryone)
                if !configuration.trustsEveryone { try Trust.check(folder: folder) }
                return configuration.takesFile.map { takes in all.filter { takes($0.path) } } ?? all
            }
            entries = all.filter { !DeclarationFile.isNamed($0.name) }
            look(atDeclarations: all.filter { DeclarationFile.isNamed($0.name) }, in: folder)
            state.withLock { $0.problems[folder] = nil }
        } catch {
            return reportProblem(error, folder)
        }
        let present = Set(paths: entries.map(\.path))
        let before = records
        let unread = entries.filter(\.isFolder).map { $0.path + "/" }
        state.withLock { state in
            let count = state.records.count
            state.records = state.records.filter { path, record in
                !record.folder.hasBytes(of: folder) || present.contains(path)
                    || unread.contains { path.path.beginsWithBytes(of: $0) }
            }
            if state.records.count < count { state.hasNewAbsentees = true }
        }
        // All files are opened before the first one's entry is called: the runtime of Swift forgets which types conform
        // to which protocols whenever a library is opened, and searches all libraries to find out again. In turns, the
        // time of a start would grow with the square of the number of modules.
        for file in entries.compactMap({ look(at: $0, in: folder) }) { finish(file) }
        if entries.contains(where: { before[$0.path]?.identity != (try? $0.identity.get()) }) {
            retryLacking(before.values.filter { $0.folder.hasBytes(of: folder) })
        }
    }

    /// Tries files again that the dynamic linker has refused before: what they lacked may have come.
    private func retryLacking(_ files: [FileRecord]) {
        for file in files {
            guard case .failed(let error, _) = file.content, error.code == .openFailed,
                case .failed(error, _)? = records[file.path]?.content
            else { continue }
            load(FileRecord(path: file.path, folder: file.folder, identity: file.identity, content: .beingWritten()))
        }
    }

    /// Notes what is wrong with a folder, or with something else of that name, and tells it when it is new.
    func reportProblem(_ error: PluginError, _ folder: String) {
        let isNew = state.withLock { state in
            defer { state.problems[folder] = error }
            return state.problems[folder] != error
        }
        if isNew { tell(.problem(error)) }
    }

    /// Opens what is new or has changed.
    private func look(at entry: PluginFolder.Entry, in folder: String) -> OpenedFile? {
        let known = records[entry.path]
        switch entry.identity {
        case .failure(let error):
            fail(FileRecord(path: entry.path, folder: folder, identity: nil, content: .beingWritten()), error)
            return nil
        case .success(let identity):
            let isDue = known?.canPass == true && state.withLock { $0.retriesFailures }
            if let known, known.identity == identity, !known.isAwaited, !known.isFleeting, !isDue { return nil }
            return open(FileRecord(path: entry.path, folder: folder, identity: identity, content: .beingWritten()))
        }
    }

    /// Stages, opens and checks a file; what goes wrong stands in its record.
    private func load(_ record: FileRecord) {
        if let file = open(record) { finish(file) }
    }

    /// Loads a file once more, since the globals of a module that ran before are not new any more.
    func reload(_ path: String) {
        if let record = records[path], let file = open(record, evenIfSame: true) { finish(file) }
    }

    /// A file that is in the process, and has not been asked yet what it is.
    private struct OpenedFile {
        let record: FileRecord
        let staged: StagedFile
        let entry: plugin_module_entry_function
    }

    /// Stages and opens a file. Nil when there is nothing more to be done, or something has gone wrong.
    private func open(_ record: FileRecord, evenIfSame: Bool = false) -> OpenedFile? {
        core.profiler.measure(.loading, record.path) {
            do throws(PluginError) {
                return try stageAndOpen(record, evenIfSame: evenIfSame)
            } catch {
                var status = stat()
                if error.code == .unreadable, lstat(record.path, &status) != 0, errno == ENOENT {
                    // Deleted since the folder was read: as if it had never been there.
                    state.withLock { $0.records[record.path] = nil }
                } else {
                    fail(record, error)
                }
                return nil
            }
        }
    }

    private func stageAndOpen(_ record: FileRecord, evenIfSame: Bool) throws(PluginError) -> OpenedFile? {
        var record = record
        let path = record.path
        try LibraryOpening.requireFree(for: path) { [weak self] in self?.openLater(path) }
        guard
            case .staged(let staged) = try staging.stage(path: record.path, checkTrust: !configuration.trustsEveryone)
        else {
            // It may be written with what it holds already, or not at all: then nothing is loaded, or told, again.
            if let known = records[path], let module = known.module ?? known.moduleBeforeWriting {
                record.content = .beingWritten(module)
                record.verdict = known.verdict
            }
            put(record)
            return nil
        }
        if !evenIfSame, var known = knownContent(of: record.path, staged) {
            staging.discard(staged)
            known.identity = staged.identity
            put(known)
            return nil
        }
        if let entry = journal.quarantined(path: record.path, digest: staged.digest) {
            guard entry.isSuspected == true, state.withLock({ $0.triesSuspected }) else {
                staging.discard(staged)
                quarantine(record, entry)
                return nil
            }
            state.withLock { _ = $0.tried.insert(record.path) }
        }
        do throws(PluginError) {
            let entry = try loader.open(staged)
            record.identity = staged.identity
            return OpenedFile(record: record, staged: staged, entry: entry)
        } catch {
            // What the linker has refused is not in the process, and claims no names of libraries.
            if error.code == .openFailed { staging.discard(staged) }
            throw error
        }
    }

    /// Opens a file that could not be opened while the constructor of another one was running.
    private func openLater(_ path: String) {
        queue.async { [weak self] in
            guard let self, !isStopped, let record = records[path], case .failed = record.content else { return }
            load(FileRecord(path: path, folder: record.folder, identity: record.identity, content: .beingWritten()))
            update([])
        }
    }

    /// Asks an opened file what it is, and checks the answer; what goes wrong stands in its record.
    private func finish(_ file: OpenedFile) {
        var record = file.record
        core.profiler.measure(.loading, record.path) {
            do throws(PluginError) {
                let module = try loader.load(file.staged, entry: file.entry)
                record.content = .module(module)
                record.since = Date()
                put(record)
            } catch {
                fail(record, error)
            }
        }
    }

    /// What a file holds, if that is what was staged now: touched, linked, or written again with the same content.
    private func knownContent(of path: String, _ staged: StagedFile) -> FileRecord? {
        guard var record = records[path] ?? nil else { return nil }
        let served = state.withLock { $0.served.values.first { $0.path.hasBytes(of: path) } }
        let candidates = [record.module, record.moduleBeforeWriting, served?.module]
        for module in candidates.compactMap(\.self) where module.hasContent(of: staged) {
            record.content = .module(module)
            return record
        }
        return nil
    }

    private func quarantine(_ record: FileRecord, _ entry: QuarantineEntry) {
        let error = PluginError(
            .quarantined,
            "\(entry.message) It is not loaded again until it changes, or --retry is given.")
        var record = record
        record.content = .quarantined(error)
        record.since = Date()
        put(record)
        if entry.isSuspected == true, configuration.watches {
            state.withLock { _ = $0.suspected.insert(record.path) }
        } else {
            tellLater(record)
        }
    }

    /// Tries once more what may have killed the last host, after everything else: it is to blame if this one dies, too.
    func trySuspected() {
        let paths = state.withLock { state in
            state.triesSuspected = true
            defer { state.suspected = [] }
            return state.suspected
        }
        for path in paths.sorted().map(\.path) {
            guard let record = records[path], case .quarantined = record.content else { continue }
            load(FileRecord(path: path, folder: record.folder, identity: record.identity, content: .beingWritten()))
        }
    }

    /// Ends the quarantine of what was tried and has not killed the host.
    func releaseTried() {
        let tried = state.withLock { state in
            defer { state.tried = [] }
            return state.tried
        }
        for path in tried.sorted() { journal.clearSuspicion(path.path) }
    }

    /// Notes why a file is not served.
    func fail(_ record: FileRecord, _ error: PluginError, _ module: LoadedModule? = nil) {
        let known = records[record.path]
        var record = record
        record.content = .failed(error, module)
        record.verdict = .undecided
        record.since = Date()
        put(record)
        state.withLock { $0.hasNewAbsentees = true }
        // A new time or mode is worth a try; the same answer is not worth telling.
        if let known, case .failed(let before, _) = known.content, known.hasContent(of: record),
            before == error || before.canPass && error.canPass
        {
            return
        }
        tellLater(record)
    }

    /// What failed is told when everything has been looked at: it may be a library that a module needs.
    private func tellLater(_ record: FileRecord) { state.withLock { $0.failures.append(record.path) } }

    /// Finds out which files are libraries of modules, and tells what failed.
    func tellFailures() {
        for owner in records.values {
            for library in owner.module?.staged.libraries ?? [] {
                guard var record = records[library], case .failed(let error, _) = record.content,
                    error.code == .invalidFile
                else { continue }
                record.content = .library(of: owner.module?.manifest.name ?? "")
                put(record)
            }
        }
        let failures = state.withLock { state in
            defer { state.failures = [] }
            return state.failures.compactMap { state.records[$0] }
        }
        for record in failures where record.isFailure {
            let status = record.status(nil)
            tell(.failed(status, goingOn: goingOn(instead: record)))
            announce("module.failed") { [calls] in calls.postFailed(status) }
        }
    }

    /// What goes on serving although a file holds something new that failed.
    private func goingOn(instead record: FileRecord) -> String? {
        state.withLock { state in
            state.served.values.first { served in
                served.path.hasBytes(of: record.path) || served.name == record.claimedModule?.manifest.name
            }.map { "\($0.name) \($0.module.manifest.version)" }
        }
    }
}
