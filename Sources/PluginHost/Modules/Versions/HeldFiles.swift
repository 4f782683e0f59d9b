import CPluginHost
import Glibc
import PluginFile
import Synchronization

/// The files of registered modules, held so that a version which is replaced or deleted before it has started can be
/// kept: the content of a file exists as long as the file is held, even if it no longer has a name. A file that is held
/// is neither opened for reading nor copied. Modules with libraries of their own are not held, since their files alone
/// could not be put back.
final class HeldFiles {
    /// How many files all hosts of the process hold at most. Each uses a descriptor; they never use more than a quarter
    /// of those that the process may have.
    static let countMax = 256
    /// A file that is held.
    struct File {
        /// The module in the file.
        let module: LoadedModule
        fileprivate let descriptor: Int32

        /// A path that leads to the file whatever has happened to its name.
        var path: String { "/proc/self/fd/\(descriptor)" }

        fileprivate init?(holding module: LoadedModule) {
            (self.module, descriptor) = (module, plugin_host_hold(module.file))
            guard descriptor >= 0 else { return nil }
            guard FileIdentity(path: path) == module.staged.identity else {
                close()
                return nil
            }
        }

        fileprivate func close() { Glibc.close(descriptor) }
    }

    /// How many files are held in the process.
    private static let total = Atomic(0)

    /// The held files by the name of the module.
    private var files: [String: File] = [:]

    deinit { for file in files.values { Self.release(file) } }

    var count: Int { files.count }

    /// Holds those files of modules that have not changed since they were read.
    func hold(_ modules: [LoadedModule]) {
        for module in modules where files[module.name] == nil && module.staged.libraries.isEmpty {
            files[module.name] = Self.held(module)
        }
    }

    private static func held(_ module: LoadedModule) -> File? {
        let count = total.add(1, ordering: .relaxed).newValue
        if count <= min(countMax, ProcessLimits.descriptors / 4), let file = File(holding: module) { return file }
        total.subtract(1, ordering: .relaxed)
        return nil
    }

    /// Ends the holding of a file that ``take(unless:)`` has returned.
    static func release(_ file: File) {
        file.close()
        total.subtract(1, ordering: .relaxed)
    }

    /// Holds a file again that ``take(unless:)`` has returned.
    func putBack(_ file: File) { files[file.module.name] = file }

    /// Removes and returns the files of modules that are no longer needed. The caller must release them
    /// or put them back.
    func take(unless isNeeded: (LoadedModule) -> Bool) -> [File] {
        let taken = files.filter { !isNeeded($0.value.module) }
        for name in taken.keys { files[name] = nil }
        return taken.values.sorted { $0.module.name < $1.module.name }
    }
}

extension ChangeContext {
    /// Holds the files of all registered modules.
    func holdFiles() { held.hold(registry.table.contents.known.modules) }

    /// Holds the files of registered modules soon: two seconds after the first change since they were last held.
    func holdFilesLater() {
        guard !isHoldScheduled, !registry.table.contents.known.isEmpty || disk.registry?.prepared != nil else { return }
        isHoldScheduled = true
        later(after: .seconds(2)) { context in
            context.isHoldScheduled = false
            context.disk.registry?.forgetPrepared()
            context.holdFiles()
        }
    }
}
