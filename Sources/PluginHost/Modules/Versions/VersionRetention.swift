import FoundationEssentials
import PluginABI
import PluginFile

/// Version retention: keeps versions that no longer serve, so that they can be put back.
struct VersionRetention {
    let context: ChangeContext

    private static let problem = "(kept versions)"
    /// How many versions may wait until they can be kept. The number is limited, since their copies use disk space.
    private static let unkeptLimit = 16

    /// Keeps versions that no longer serve and that no file contains.
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

    /// Keeps versions that are no longer registered, have not started, and are in no file, if their files are held.
    func keepHeld() {
        let known = context.registry.table.contents.known
        let gone = context.held.take { module in
            known.module(named: module.name).map { Plan.isSame($0, module) } == true
        }
        for file in gone {
            var isHeld = false
            defer { if !isHeld { HeldFiles.release(file) } }
            let module = file.module
            let served = context.serving.modules[module.name]
            guard served.map({ Plan.isSame($0.module, module) }) != true, !isInFolder(module) else { continue }
            // If the file was overwritten, the version is lost.
            guard let source = try? SourceFile(opening: file.path), source.digest() == module.staged.digest else {
                continue
            }
            do throws(PluginError) {
                try context.disk.store.keep(
                    file: file.path, as: module.file, module: module.name, version: module.outline.version,
                    folder: module.file.parentFolder)
                if context.drains.unkept.isEmpty { context.folders.problems[Self.problem] = nil }
            } catch {
                context.reportProblem(error, Self.problem)
                guard error.canPass else { continue }
                // The next change of what is registered tries again.
                context.held.putBack(file)
                isHeld = true
            }
        }
    }

    /// Returns whether a file contains the module.
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

    /// Returns whether the copy of a torn-down module is still needed, because its version is not kept yet.
    func isUnkept(_ module: LoadedModule) -> Bool { context.drains.unkept.contains { $0.module === module } }

    /// Tries again to keep versions that could not be kept for lack of a resource, until that fails again.
    func keepAgain() {
        keepHeld()
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

    /// Keeps the version of a module in a file, with its libraries if their copies still exist.
    ///
    /// - Throws: `unreadable`.
    func keep(_ module: LoadedModule, of path: String, sparing needed: KeptVersion? = nil) throws(PluginError) {
        let (manifest, folder) = (module.manifest, path.parentFolder)
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
    /// Returns the kept versions of a module that belong in the folders of this host, each with the path at which it
    /// would be put back, the most recently kept first.
    func kept(_ name: String, for configuration: HostConfiguration) -> [(version: KeptVersion, path: String)] {
        let folders = configuration.folders.map { (name: $0.droppingSlashes, resolved: $0.withoutLinks) }
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

    /// Returns a sentence, to be appended to another, with the number of versions of a module that are left out, and
    /// the reasons; an empty string if there are none.
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
    /// A folder's path without slashes at its end.
    var droppingSlashes: String {
        var path = self
        while path.count > 1, path.hasSuffix("/") { path.removeLast() }
        return path
    }
}
