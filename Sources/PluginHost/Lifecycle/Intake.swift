import Foundation
import PluginABI
import Synchronization

// From a folder to loaded modules: what is there, what is new, what has changed. Runs on the lifecycle queue.

extension Lifecycle {
    /// Compares a folder with the records, and loads what is new or has changed.
    func look(into folder: String) -> [LoadedModule] {
        let entries: [PluginFolder.Entry]
        do throws(PluginError) {
            let all = try dispatcher.profiler.measure(.discovery, folder) { () throws(PluginError) in
                let all = try PluginFolder.list(folder)
                if !configuration.trustsEveryone { try Trust.check(folder: folder) }
                return all
            }
            entries = all.filter { !RouteFile.isNamed($0.name) }
            look(atRouteFiles: all.filter { RouteFile.isNamed($0.name) }, in: folder)
            state.withLock { $0.problems[folder] = nil }
        } catch {
            reportProblem(error, folder)
            return []
        }
        forgetMissing(in: folder, present: Set(entries.map(\.path)))
        let before = records
        let loaded = entries.compactMap { look(at: $0, in: folder) }
        let hasNews = entries.contains { before[$0.path]?.identity != (try? $0.identity.get()) }
        return loaded + (hasNews ? retryLacking(before.values.filter { $0.folder == folder }) : [])
    }

    /// Tries files again that the dynamic linker has refused before: what they lacked may have come.
    private func retryLacking(_ files: [FileRecord]) -> [LoadedModule] {
        files.compactMap { file in
            guard case .failed(let error) = file.state, error.code == .openFailed,
                case .failed(error)? = records[file.path]?.state
            else { return nil }
            return load(FileRecord(path: file.path, folder: file.folder, identity: file.identity, state: .beingWritten))
        }
    }

    private func reportProblem(_ error: PluginError, _ folder: String) {
        let isNew = state.withLock { state in
            defer { state.problems[folder] = error }
            return state.problems[folder] != error
        }
        if isNew { tell(.problem(error)) }
        guard error.code == .unreadable else { return }
        forgetMissing(in: folder, present: [])
        look(atRouteFiles: [], in: folder)
    }

    private func forgetMissing(in folder: String, present: Set<String>) {
        for record in records.values where record.folder == folder && !present.contains(record.path) {
            if record.isIdle {
                state.withLock { $0.records[record.path] = nil }
            } else {
                vanish(record)
            }
        }
    }

    /// Notes that the file of an active module is gone. It is told later: a renamed one is there under another name.
    private func vanish(_ record: FileRecord) {
        guard record.reported != .deleted else { return }
        state.withLock { state in
            state.records[record.path]?.reported = .deleted
            state.vanished.append(record.path)
        }
    }

    func tellVanished() {
        let vanished = state.withLock { state in
            defer { state.vanished = [] }
            return state.vanished.compactMap { state.records[$0] }
        }
        for record in vanished where record.reported == .deleted {
            tell(.changedOnDisk(record.status, "its file is gone, or cannot be read; the loaded module goes on"))
        }
    }

    private func look(at entry: PluginFolder.Entry, in folder: String) -> LoadedModule? {
        let known = records[entry.path]
        let identity: FileIdentity
        switch entry.identity {
        case .failure(let error):
            if let known, !known.isIdle {
                vanish(known)
            } else {
                fail(FileRecord(path: entry.path, folder: folder, identity: nil, state: .failed(error)), error)
            }
            return nil
        case .success(let found): identity = found
        }
        if let known {
            if !known.isIdle {
                if known.identity != identity, known.reported != .changed(identity) {
                    compare(known, identity)
                } else if known.identity == identity {
                    state.withLock { $0.records[entry.path]?.reported = nil }
                }
                return nil
            }
            if case .beingWritten = known.state {} else if known.identity == identity { return nil }
        }
        return load(FileRecord(path: entry.path, folder: folder, identity: identity, state: .beingWritten))
    }

    /// Stages, opens and checks a file; what goes wrong stands in its record.
    private func load(_ record: FileRecord) -> LoadedModule? {
        dispatcher.profiler.measure(.loading, record.path) { stageAndLoad(record) }
    }

    private func stageAndLoad(_ record: FileRecord) -> LoadedModule? {
        do throws(PluginError) {
            guard
                case .staged(let staged) = try staging.stage(
                    path: record.path, checkTrust: !configuration.trustsEveryone)
            else {
                put(record)
                return nil
            }
            if let entry = journal.quarantined(path: record.path, digest: staged.digest) {
                staging.discard(staged)
                quarantine(record, entry)
                return nil
            }
            var record = record
            record.identity = staged.identity
            let module: LoadedModule
            do throws(PluginError) {
                module = try loader.load(staged)
            } catch {
                // What the linker has refused is not in the process, and claims no names of libraries.
                if error.code == .openFailed { staging.discard(staged) }
                throw error
            }
            record.state = .loaded(module)
            put(record)
            return module
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

    private func quarantine(_ record: FileRecord, _ entry: QuarantineEntry) {
        let error = PluginError(
            .quarantined,
            "\(entry.message) It is not loaded again until it changes, or --retry is given.")
        var record = record
        record.state = .quarantined(error)
        put(record)
        tellLater(record)
    }

    /// Notes why a file is not served.
    func fail(_ record: FileRecord, _ error: PluginError) {
        let known = records[record.path]
        var record = record
        record.state = .failed(error)
        put(record)
        // A new time or mode is worth a try; the same answer is not worth telling.
        if let known, case .failed(error) = known.state, known.hasContent(of: record) { return }
        tellLater(record)
    }

    /// What failed is told when everything has been looked at: it may be a library that a module needs.
    private func tellLater(_ record: FileRecord) { state.withLock { $0.failures.append(record.path) } }

    /// Finds out which files are libraries of modules, and tells what failed.
    func tellFailures() {
        for owner in records.values {
            for library in owner.module?.staged.libraries ?? [] {
                guard var record = records[library], case .failed(let error) = record.state, error.code == .invalidFile
                else { continue }
                record.state = .library(of: owner.module?.manifest.name ?? "")
                put(record)
            }
        }
        let failures = state.withLock { state in
            defer { state.failures = [] }
            return state.failures.compactMap { state.records[$0] }
        }
        for record in failures where record.isFailure {
            tell(.failed(record.status))
            postFailed(record.status)
        }
    }

    /// Tells, once, that the file of an active module is not what was loaded. One that was only touched, linked or
    /// written again with the same content is.
    private func compare(_ record: FileRecord, _ identity: FileIdentity) {
        guard let module = record.module else { return }
        var record = record
        switch staging.hasContent(of: module.staged, path: record.path) {
        case nil: record.reported = .beingWritten
        case true?: (record.identity, record.reported) = (identity, nil)
        case false?: record.reported = .changed(identity)
        }
        put(record)
        if case .changed = record.reported {
            tell(.changedOnDisk(record.status, "its file has changed; the loaded module goes on"))
        }
    }
}
