import Glibc
import PluginABI
import PluginFile

/// A file with the module that it contains.
struct LoadedFile {
    let path: String
    let module: LoadedModule
}

/// The move of a module's files from the plugins folders to the version store.
struct FileMove {
    let context: ChangeContext
    let name: String
    let files: [LoadedFile]

    /// The change that the move would cause.
    var plan: PlannedChange {
        var records = context.folders.records
        for file in files { records[file.path] = nil }
        return PlannedChange(
            of: name, moving: files.map(\.path), restoring: nil, context.plan(with: records), context)
    }

    /// Moves the files, and starts the modules that serve without them. If that fails, everything is undone.
    ///
    /// - Throws: The reason why the files were not moved.
    func make() throws(PluginError) {
        let before = context.serving.modules[name]?.generation
        let aside = try SetAside(files.map(\.path))
        do throws(PluginError) {
            for file in files {
                try VersionRetention(context: context).keep(file.module, of: file.path)
                try Self.delete(file.path)
            }
            context.patiently { context.update() }
            if let before, context.serving.modules[name]?.generation === before {
                let error = context.folders.records.values.first { $0.claimedModule?.outline.name == name }?.error
                throw error ?? PluginError(.conflict, "\(name) still serves.")
            }
            aside.discard()
        } catch {
            aside.putBack()
            context.patiently { context.update() }
            throw PluginError(
                error.code,
                "\(name) \(before.map { "\($0.version) " } ?? "")remains, and its files were put back: "
                    + "\(error.message)",
                source: error.source)
        }
    }

    /// Deletes a file, if it exists.
    ///
    /// - Throws: `unreadable` if it cannot be deleted.
    static func delete(_ path: String) throws(PluginError) {
        guard unlink(path) == 0 || errno == ENOENT else {
            throw PluginError(.unreadable, "\(path) cannot be removed: \(describe(errno: errno)).")
        }
    }

    /// Returns the files of a module in the order in which they are kept: the one that serves last, so that it becomes
    /// the previous version.
    ///
    /// - Throws: `conflict` if the file that the module was loaded from has other content now.
    static func files(of name: String, in context: ChangeContext) throws(PluginError) -> [LoadedFile] {
        let served = context.serving.modules[name]
        if let served, served.module.isOfFile, let record = context.folders.records[served.path],
            record.claimedModule == nil
        {
            throw PluginError(
                .conflict,
                "\(served.path), from which \(name) \(served.version) was loaded, has other content now and is not "
                    + "moved: \(record.error?.message ?? "it is not a module.") Delete the file, or put the version "
                    + "that serves back with a rollback.")
        }
        return context.folders.files(holding: name).sorted { left, right in
            let isServed = [left, right].map { served != nil && Plan.isSame($0.module, served!.module) }
            if isServed[0] != isServed[1] { return isServed[1] }
            return (left.module.outline.version, PathKey(left.path)) < (
                right.module.outline.version, PathKey(right.path)
            )
        }
    }
}

extension FolderContents {
    /// Returns the files that contain the module, including those that failed.
    func files(holding name: String) -> [LoadedFile] {
        records.values.compactMap { record in
            guard let module = record.claimedModule, module.outline.name == name, module.isOfFile else { return nil }
            return LoadedFile(path: record.path, module: module)
        }
    }
}
