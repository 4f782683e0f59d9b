import CPluginHost
import Glibc
import PluginFile

/// The files of registered modules, held so that a version which is replaced or deleted before it has started can be
/// kept: the content of a file exists as long as the file is held, even if it no longer has a name. A file that is held
/// is neither opened for reading nor copied.
final class HeldFiles {
    /// How many files are held at most. Each uses a descriptor; they never use more than a quarter of those that the
    /// process may have.
    static let countMax = 256

    /// A file that is held.
    struct File {
        /// The module in the file.
        let module: LoadedModule
        fileprivate let descriptor: Int32

        /// A path that leads to the file whatever has happened to its name.
        var path: String { "/proc/self/fd/\(descriptor)" }

        func close() { Glibc.close(descriptor) }
    }

    /// By the name of the module.
    private var files: [String: File] = [:]

    deinit { for file in files.values { file.close() } }

    var count: Int { files.count }

    /// Holds the files of modules, as far as they are unchanged since they were read.
    func hold(_ modules: [LoadedModule]) {
        let limit = min(Self.countMax, ProcessLimits.descriptors / 4)
        for module in modules where files[module.name]?.module !== module {
            files.removeValue(forKey: module.name)?.close()
            guard files.count < limit else { continue }
            let descriptor = plugin_host_hold(module.file)
            guard descriptor >= 0 else { continue }
            let file = File(module: module, descriptor: descriptor)
            if FileIdentity(path: file.path) == module.staged.identity {
                files[module.name] = file
            } else {
                file.close()
            }
        }
    }

    /// Removes and returns the files of modules that are no longer needed. The caller must close them.
    func take(unless isNeeded: (LoadedModule) -> Bool) -> [File] {
        let taken = files.filter { !isNeeded($0.value.module) }
        for name in taken.keys { files[name] = nil }
        return taken.values.sorted { $0.module.name < $1.module.name }
    }
}

extension ChangeContext {
    /// Holds the files of all registered modules.
    func holdFiles() { held.hold(registry.table.contents.known.modules) }

    /// Holds the files of registered modules when there have been no changes for a while.
    func holdFilesLater() {
        guard !isHoldScheduled, !registry.table.contents.known.isEmpty else { return }
        isHoldScheduled = true
        later(after: .seconds(2)) { context in
            context.isHoldScheduled = false
            context.holdFiles()
        }
    }
}
