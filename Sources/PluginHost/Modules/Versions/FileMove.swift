import Glibc
import PluginABI
import PluginFile

/// A file, and the module in it.
struct LoadedFile {
    let path: String
    let module: LoadedModule
}

/// The move of files of a module out of the plugins folders to the store of kept versions.
struct FileMove {
    let context: ChangeContext
    let name: String
    let files: [LoadedFile]

    /// What would be without them.
    var plan: PlannedChange {
        var records = context.folders.records
        for file in files { records[file.path] = nil }
        return PlannedChange(
            of: name, moving: files.map(\.path), restoring: nil, context.plan(with: records), context.serving.modules)
    }

    /// Moves them, and lets what is left start; all or nothing.
    func make() throws(PluginError) {
        let before = context.serving.modules[name]?.generation
        let aside = try SetAside(files.map(\.path))
        do throws(PluginError) {
            for file in files {
                try VersionRetention(context: context).keep(file.module, of: file.path)
                try Self.delete(file.path)
            }
            context.update()
            if let before, context.serving.modules[name]?.generation === before {
                let error = context.folders.records.values.first { $0.claimedModule?.manifest.name == name }?.error
                throw error ?? PluginError(.conflict, "\(name) still serves.")
            }
            aside.discard()
        } catch {
            aside.putBack()
            context.update()
            throw PluginError(
                error.code,
                "\(name) \(before.map { "\($0.version) " } ?? "")goes on, and its files are back: \(error.message)",
                source: error.source)
        }
    }

    /// - Throws: `unreadable`.
    static func delete(_ path: String) throws(PluginError) {
        guard unlink(path) == 0 || errno == ENOENT else {
            throw PluginError(.unreadable, "\(path) cannot be removed: \(describe(errno: errno)).")
        }
    }

    /// The files of a module in the order in which they are kept, so that what serves is the version before.
    ///
    /// - Throws: `conflict` if the file that it came from holds something else now.
    static func files(of name: String, in context: ChangeContext) throws(PluginError) -> [LoadedFile] {
        let served = context.serving.modules[name]
        if let served, served.module.isOfFile, let record = context.folders.records[served.path],
            record.claimedModule == nil
        {
            throw PluginError(
                .conflict,
                "\(served.path), from which \(name) \(served.version) was loaded, holds something else now, and so it is "
                    + "not moved: \(record.error?.message ?? "it is no module.") Delete the file, or put the version that "
                    + "serves back with a rollback.")
        }
        return context.folders.files(holding: name).sorted { left, right in
            let isServed = [left, right].map { served != nil && Plan.isSame($0.module, served!.module) }
            if isServed[0] != isServed[1] { return isServed[1] }
            return (left.module.manifest.version, PathKey(left.path)) < (
                right.module.manifest.version, PathKey(right.path)
            )
        }
    }
}

extension FolderContents {
    /// The files that hold a module, or something that claims to be it.
    func files(holding name: String) -> [LoadedFile] {
        records.values.compactMap { record in
            guard let module = record.claimedModule, module.manifest.name == name, module.isOfFile else { return nil }
            return LoadedFile(path: record.path, module: module)
        }
    }
}
