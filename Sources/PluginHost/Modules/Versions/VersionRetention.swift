import Foundation
import PluginABI
import PluginFile
import Synchronization

/// Keeps versions that serve no more, to be put back.
struct VersionRetention {
    let context: ChangeContext

    private static let problem = "(kept versions)"
    /// How many versions wait at most until they can be kept: their copies take room.
    private static let unkeptLimit = 16

    /// Keeps what serves no more and what no file holds any more.
    func keep(leaving: [Served]) {
        for leaving in leaving where leaving.module.isOfFile && !isInFolder(leaving.module) {
            do throws(PluginError) {
                try keep(leaving.module, of: leaving.path)
                if context.drains.unkept.isEmpty { context.folders.problems[Self.problem] = nil }
            } catch {
                context.reportProblem(error, Self.problem)
                if error.canPass { addUnkept(leaving) }
            }
        }
    }

    /// Whether a file holds the module.
    private func isInFolder(_ module: LoadedModule) -> Bool {
        context.folders.records.values.contains { $0.claimedModule.map { Plan.isSame($0, module) } == true }
    }

    private func addUnkept(_ leaving: Served) {
        context.drains.unkept.append(leaving)
        if context.drains.unkept.count > Self.unkeptLimit {
            removeFilesIfRetired(context.drains.unkept.removeFirst())
        }
        FolderUpdate(context).retryLater()
    }

    /// Whether the copy of a module is needed although it is torn down.
    func isUnkept(_ module: LoadedModule) -> Bool { context.drains.unkept.contains { $0.module === module } }

    /// Tries to keep what could not be kept for want of something, until that fails again.
    func keepAgain() {
        while let first = context.drains.unkept.first {
            var problem: PluginError?
            do throws(PluginError) {
                if !isInFolder(first.module) { try keep(first.module, of: first.path) }
            } catch {
                context.reportProblem(error, Self.problem)
                if error.canPass { return }
                problem = error
            }
            context.drains.unkept.removeFirst()
            if context.drains.unkept.isEmpty, problem == nil { context.folders.problems[Self.problem] = nil }
            removeFilesIfRetired(first)
        }
    }

    private func removeFilesIfRetired(_ served: Served) {
        if !context.drains.draining.contains(where: { $0.generation === served.generation }) {
            context.disk.staging.removeFiles(of: served.module.staged)
        }
    }

    /// Keeps what a file holds, with the libraries that came with it as long as their copies are there.
    ///
    /// - Throws: `unreadable`.
    func keep(_ module: LoadedModule, of path: String, sparing needed: KeptVersion? = nil) throws(PluginError) {
        let (manifest, folder) = (module.manifest, (path as NSString).deletingLastPathComponent)
        let store = context.disk.store
        if FileManager.default.fileExists(atPath: module.stagedPath) {
            try store.keep(
                module.staged, module: manifest.name, version: manifest.version, folder: folder, sparing: needed)
        } else {
            try store.keep(
                file: path, module: manifest.name, version: manifest.version, folder: folder, sparing: needed)
        }
    }
}

extension VersionStore {
    /// What is kept of a module and belongs into the folders of this host, with the file that it would be put back as;
    /// the newest first.
    func kept(_ name: String, for configuration: HostConfiguration) -> [(version: KeptVersion, path: String)] {
        let folders = configuration.folders.map { (name: $0.droppingSlashes, resolved: VersionStore.resolved($0)) }
        return versions(of: name).compactMap { kept in
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
    func sentenceOnLeftOut(_ name: String) -> String {
        let errors = leftOut(of: name)
        guard !errors.isEmpty else { return "" }
        var reasons: [String] = []
        for error in errors where !reasons.contains(error.message) { reasons.append(error.message) }
        let more = reasons.count > 3 ? " And so on." : ""
        return " \(errors.count) kept \(errors.count == 1 ? "version is" : "versions are") left out: "
            + reasons.prefix(3).joined(separator: " ") + more
    }
}

extension String {
    /// A folder's path without the slashes at its end.
    fileprivate var droppingSlashes: String {
        var path = self
        while path.count > 1, path.hasSuffix("/") { path.removeLast() }
        return path
    }
}
