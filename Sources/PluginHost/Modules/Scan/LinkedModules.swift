import CPluginHost
import PluginABI
import PluginFile
import Synchronization

/// Modules that are linked into the program, found by the records that they leave in a section of its image.
struct LinkedModules {
    let context: ChangeContext

    private static let folder = "(linked)"

    /// Takes what is linked into the program, checked like what a file brings. What is wrong with a module stands in its
    /// record.
    func take() {
        let count = plugin_host_linked_count()
        guard context.configuration.takesLinkedModules, count > 0 else { return }
        guard Self.claim(for: context) else {
            let error = PluginError(
                .conflict,
                "Another host of this program has the modules that are linked into it (\(count)), and keeps them: they are "
                    + "there only once. Set takesLinkedModules to false for all hosts but one.")
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

    /// Which host has them.
    private static let holder = Mutex<ObjectIdentifier?>(nil)

    private static func claim(for context: ChangeContext) -> Bool {
        holder.withLock { holder in
            if holder == nil { holder = ObjectIdentifier(context) }
            return holder == ObjectIdentifier(context)
        }
    }

    /// After their `tearDown`: another host may have them.
    func release() {
        Self.holder.withLock { holder in if holder == ObjectIdentifier(context) { holder = nil } }
    }

    private func take(_ index: Int, _ number: StagedFile) throws(PluginError) {
        let module = try context.disk.loader.load(number) { UInt(bitPattern: plugin_host_linked_description(index)) }
        module.staged = .linked(module.manifest.name)
        if let other = context.folders.records[module.file]?.module {
            throw PluginError(
                .conflict,
                "Two modules that are linked into the program are named \(module.manifest.name): the versions "
                    + "\(other.manifest.version) and \(module.manifest.version). The first one serves; leave one of "
                    + "them out, or rename it.")
        }
        context.folders.put(
            FileRecord(
                path: module.file, folder: Self.folder, identity: nil, content: .module(.init(module: module))))
    }
}
