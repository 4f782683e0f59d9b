import PluginABI
import PluginFile
import Synchronization

/// The modules that are linked into the program or into its libraries, found by their records.
struct LinkedModules {
    let context: ChangeContext

    private static let folder = "(linked)"

    /// Loads the linked modules, with the same checks as modules in files. The error of a module is stored in its
    /// record.
    func take() {
        guard context.configuration.takesLinkedModules else { return }
        let linked = LinkedRecords.ofProcess
        for problem in linked.problems {
            context.core.settings.log(LogEntry(level: .warning, message: problem.message))
        }
        let records = linked.records
        guard !records.isEmpty else { return }
        guard Self.claim(for: context) else {
            let error = PluginError(
                .conflict,
                "Another host of this program already uses the modules that are linked into it (\(records.count)). "
                    + "They exist only once. Set takesLinkedModules to false for all hosts but one.")
            context.ownProblems.all.append(error)
            context.tell(.problem(error))
            return
        }
        for (index, record) in records.enumerated() {
            let title = StagedFile.linked("number \(index + 1)\(record.location)")
            do throws(PluginError) {
                try take(record, title)
            } catch {
                context.folders.fail(FileRecord(path: title.original, folder: Self.folder, identity: nil), error)
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

    private func take(_ record: LinkedRecords.Record, _ title: StagedFile) throws(PluginError) {
        let module = try context.disk.loader.load(title, record.entry.get())
        module.staged = .linked(module.outline.name)
        if let other = context.folders.records[module.file]?.module {
            throw PluginError(
                .conflict,
                "Two modules that are linked into the program are named \(module.outline.name): versions "
                    + "\(other.outline.version) and \(module.outline.version)\(record.location). "
                    + "The first one serves; remove or rename one of them.")
        }
        context.folders.put(
            FileRecord(
                path: module.file, folder: Self.folder, identity: nil, content: .module(.init(module: module))))
    }
}
