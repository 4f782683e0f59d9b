import CPluginABI
import CPluginHost
import PluginABI
import PluginFile
import Synchronization

// Modules that are linked into the program, found by the records that they leave in a section of its image. Runs on the
// lifecycle queue.

extension Lifecycle {
    /// What is linked into the program, checked like what a file brings. What is wrong with a module stands in its
    /// record.
    func lookIntoProgram() {
        let count = plugin_host_linked_count()
        guard configuration.takesLinkedModules, count > 0 else { return }
        guard claimLinkedModules() else {
            let error = PluginError(
                .conflict,
                "Another host of this program has the modules that are linked into it (\(count)), and keeps them: they are "
                    + "there only once. Set takesLinkedModules to false for all hosts but one.")
            state.withLock { $0.otherProblems.append(error) }
            tell(.problem(error))
            return
        }
        for index in 0..<count {
            let number = StagedFile.linked("number \(index + 1)")
            do throws(PluginError) {
                try takeLinked(index, number)
            } catch {
                fail(FileRecord(linked: number.original, .beingWritten()), error)
            }
        }
    }

    /// Which lifecycle has them.
    private static let holder = Mutex<ObjectIdentifier?>(nil)

    private func claimLinkedModules() -> Bool {
        Self.holder.withLock { holder in
            if holder == nil { holder = ObjectIdentifier(self) }
            return holder == ObjectIdentifier(self)
        }
    }

    /// After their `tearDown`: another host may have them.
    func releaseLinkedModules() {
        Self.holder.withLock { holder in if holder == ObjectIdentifier(self) { holder = nil } }
    }

    private func takeLinked(_ index: Int, _ number: StagedFile) throws(PluginError) {
        let answer = try loader.run(.entry, number, "The entry function of") {
            UInt(bitPattern: plugin_host_linked_description(index))
        }
        guard let answer else {
            throw PluginError(
                .deadlineExceeded,
                "The entry function of the linked module \(number.original) did not return within "
                    + "\(configuration.hookTimeout), which is the hookTimeout.")
        }
        // Static data of the program.
        guard let description = UnsafePointer<plugin_module>(bitPattern: answer) else {
            throw PluginError(
                .invalidDescription,
                "The record \(index + 1) in the section \(PLUGIN_MODULE_SECTION) of the program leads to no description. "
                    + "It must be a function that returns one, as plugin_module_entry does.")
        }
        let module = try loader.check(description, number)
        module.staged = .linked(module.manifest.name)
        if let other = records[module.file]?.module {
            throw PluginError(
                .conflict,
                "Two modules that are linked into the program are named \(module.manifest.name): the versions "
                    + "\(other.manifest.version) and \(module.manifest.version). The first one serves; leave one of "
                    + "them out, or rename it.")
        }
        put(FileRecord(linked: module.file, .module(module)))
    }
}

extension FileRecord {
    /// The record of what is no file, but a part of the program.
    fileprivate init(linked name: String, _ content: Content) {
        self.init(path: name, folder: "(linked)", identity: nil, content: content)
    }

}
