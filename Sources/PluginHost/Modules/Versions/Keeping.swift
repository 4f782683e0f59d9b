import Foundation
import PluginABI
import PluginFile
import Synchronization

// Versions that serve no more are kept, to be put back. Runs on the lifecycle queue.

extension Lifecycle {
    /// Keeps what serves no more and what no file holds any more.
    func keepVersions(of leaving: [Served]) {
        for leaving in leaving where leaving.module.staged.source == .file && !isHeld(leaving.module) {
            do throws(PluginError) {
                try keep(leaving.module, of: leaving.path)
                state.withLock { if $0.unkept.isEmpty { $0.problems[Self.keepingProblem] = nil } }
            } catch {
                reportProblem(error, Self.keepingProblem)
                if error.canPass { addUnkept(leaving) }
            }
        }
    }

    /// Whether a file holds the module.
    private func isHeld(_ module: LoadedModule) -> Bool {
        records.values.contains { $0.claimedModule.map { Plan.isSame($0, module) } == true }
    }

    private static let keepingProblem = "(kept versions)"
    /// How many versions wait at most until they can be kept: their copies take room.
    private static let unkeptLimit = 16

    private func addUnkept(_ leaving: Served) {
        let surplus = state.withLock { state in
            state.unkept.append(leaving)
            return state.unkept.count > Self.unkeptLimit ? state.unkept.removeFirst() : nil
        }
        if let surplus { removeFilesIfRetired(surplus) }
        retryLater()
    }

    /// Whether the copy of a module is needed although it is torn down.
    func isUnkept(_ module: LoadedModule) -> Bool { state.withLock { $0.unkept.contains { $0.module === module } } }

    /// Tries to keep what could not be kept for want of something, until that fails again.
    func keepAgain() {
        guard state.withLock({ $0.retriesFailures }) else { return }
        while let first = state.withLock({ $0.unkept.first }) {
            var problem: PluginError?
            do throws(PluginError) {
                if !isHeld(first.module) { try keep(first.module, of: first.path) }
            } catch {
                reportProblem(error, Self.keepingProblem)
                if error.canPass { return }
                problem = error
            }
            state.withLock { state in
                state.unkept.removeFirst()
                if state.unkept.isEmpty, problem == nil { state.problems[Self.keepingProblem] = nil }
            }
            removeFilesIfRetired(first)
        }
    }

    private func removeFilesIfRetired(_ served: Served) {
        let isDraining = state.withLock { state in
            (state.leaving + state.draining).contains { $0.generation === served.generation }
        }
        if !isDraining { staging.removeFiles(of: served.module.staged) }
    }

    /// Keeps what a file holds, with the libraries that came with it as long as their copies are there.
    ///
    /// - Throws: `unreadable`.
    func keep(_ module: LoadedModule, of path: String, sparing needed: KeptVersion? = nil) throws(PluginError) {
        let (manifest, folder) = (module.manifest, (path as NSString).deletingLastPathComponent)
        if FileManager.default.fileExists(atPath: module.stagedPath) {
            try store.keep(
                module.staged, module: manifest.name, version: manifest.version, folder: folder, sparing: needed)
        } else {
            try store.keep(
                file: path, module: manifest.name, version: manifest.version, folder: folder, sparing: needed)
        }
    }

    /// What is kept of a module and belongs into the folders of this host, with the file that it would be put back as;
    /// the newest first.
    func kept(_ name: String) -> [(version: KeptVersion, path: String)] {
        let folders = configuration.folders.map { (name: $0.droppingSlashes, resolved: VersionStore.resolved($0)) }
        return store.versions(of: name).compactMap { kept in
            for folder in folders {
                if kept.folder.hasBytes(of: folder.resolved) { return (kept, "\(folder.name)/\(kept.fileName)") }
                guard configuration.includesSubfolders, kept.folder.beginsWithBytes(of: folder.resolved + "/") else {
                    continue
                }
                return (
                    kept,
                    "\(folder.name)\(Substring(kept.folder.utf8.dropFirst(folder.resolved.utf8.count)))/\(kept.fileName)"
                )
            }
            return nil
        }
    }

    /// How many versions of a module are left out, and why, as a sentence that follows another; empty where none is.
    func leftOut(_ name: String) -> String {
        let errors = store.leftOut(of: name)
        guard !errors.isEmpty else { return "" }
        var reasons: [String] = []
        for error in errors where !reasons.contains(error.message) { reasons.append(error.message) }
        let more = reasons.count > 3 ? " And so on." : ""
        return " \(errors.count) kept \(errors.count == 1 ? "version is" : "versions are") left out: "
            + reasons.prefix(3).joined(separator: " ") + more
    }

    /// The files that hold a module, or something that claims to be it.
    ///
    /// - Throws: `conflict` if the file that it came from holds something else now.
    func files(of name: String) throws(PluginError) -> [HeldModule] {
        let (records, served) = state.withLock { ($0.records, $0.served[name]) }
        let files = records.values.compactMap { record -> HeldModule? in
            guard let module = record.claimedModule, module.manifest.name == name, !module.isLinked else { return nil }
            return HeldModule(path: record.path, module: module)
        }
        if let served, !served.module.isLinked, let record = records[served.path], record.claimedModule == nil {
            throw PluginError(
                .conflict,
                "\(served.path), from which \(name) \(served.module.manifest.version) was loaded, holds something else "
                    + "now, and so it is not moved: \(record.error?.message ?? "it is no module.") Delete the file, or put "
                    + "the version that serves back with a rollback.")
        }
        // What serves is kept last, so that it is the version before.
        return files.sorted { left, right in
            let isServed = [left, right].map { served != nil && Plan.isSame($0.module, served!.module) }
            if isServed[0] != isServed[1] { return isServed[1] }
            return (left.module.manifest.version, PathKey(left.path)) < (
                right.module.manifest.version, PathKey(right.path)
            )
        }
    }
}

/// A file, and the module in it.
struct HeldModule {
    let path: String
    let module: LoadedModule
}

extension String {
    /// A folder's path without the slashes at its end.
    fileprivate var droppingSlashes: String {
        var path = self
        while path.count > 1, path.hasSuffix("/") { path.removeLast() }
        return path
    }
}
