import CPluginHost
import PluginABI
import PluginFile
import Synchronization

/// The modules that are linked into the program, found by their records in a section of its image.
struct LinkedModules {
    let context: ChangeContext

    private static let folder = "(linked)"

    /// Loads the modules that are linked into the program, with the same checks as modules in files. The error of a
    /// module is stored in its record.
    func take() {
        let count = plugin_host_linked_count()
        guard context.configuration.takesLinkedModules, count > 0 else { return }
        guard Self.claim(for: context) else {
            let error = PluginError(
                .conflict,
                "Another host of this program already uses the modules that are linked into it (\(count)), which exist "
                    + "only once. Set takesLinkedModules to false for all hosts but one.")
            context.ownProblems.all.append(error)
            context.tell(.problem(error))
            return
        }
        for index in 0..<count {
            let number = StagedFile.linked("number \(index + 1)")
            do throws(PluginError) {
                try take(index, number)
            } catch {
                context.folders.fail(FileRecord(path: number.original, folder: Self.folder, identity: nil), error)
            }
        }
    }

    /// The host that uses the linked modules.
    private static let holder = Mutex<ObjectIdentifier?>(nil)

    private static func claim(for context: ChangeContext) -> Bool {
        holder.withLock { holder in
            if holder == nil { holder = ObjectIdentifier(context) }
            return holder == ObjectIdentifier(context)
        }
    }

    /// Lets another host use the linked modules. Called after their `tearDown`.
    func release() {
        Self.holder.withLock { holder in if holder == ObjectIdentifier(context) { holder = nil } }
    }

    private func take(_ index: Int, _ number: StagedFile) throws(PluginError) {
        let module = try context.disk.loader.load(number) { UInt(bitPattern: plugin_host_linked_description(index)) }
        module.staged = .linked(module.manifest.name)
        if let other = context.folders.records[module.file]?.module {
            throw PluginError(
                .conflict,
                "Two modules that are linked into the program are named \(module.manifest.name): versions "
                    + "\(other.manifest.version) and \(module.manifest.version). The first one serves; remove or "
                    + "rename one of them.")
        }
        context.folders.put(
            FileRecord(
                path: module.file, folder: Self.folder, identity: nil, content: .module(.init(module: module))))
    }
}
