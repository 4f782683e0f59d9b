import Foundation
import Glibc
import PluginABI
import PluginFile
import Synchronization

extension Lifecycle {
    func remove(_ name: String, force: Bool, dryRun: Bool) throws(PluginError) -> PlannedChange {
        update(Set(configuration.folders))
        let files = try files(of: name)
        guard !files.isEmpty else { throw nothingToMove(name) }
        let change = try planMove(of: files, name)
        if !force { try change.requireNoDependents("removed") }
        if !dryRun { try move(files, of: name) }
        return change
    }

    /// What would be without some files of a module.
    func planMove(of files: [HeldModule], _ name: String) throws(PluginError) -> PlannedChange {
        var records = records
        for file in files { records[file.path] = nil }
        return PlannedChange(
            of: name, moving: files.map(\.path), restoring: nil, plan(with: Array(records.values)),
            state.withLock { $0.served })
    }

    /// Moves files of a module to the store, and lets what is left start; all or nothing.
    func move(_ files: [HeldModule], of name: String) throws(PluginError) {
        let before = state.withLock { $0.served[name]?.generation }
        let aside = try SetAside(files.map(\.path))
        do throws(PluginError) {
            for file in files {
                try keep(file.module, of: file.path)
                try Self.delete(file.path)
            }
            update(Set(configuration.folders))
            if let before, state.withLock({ $0.served[name]?.generation }) === before {
                let error = records.values.first { $0.claimedModule?.manifest.name == name }?.error
                throw error ?? PluginError(.conflict, "\(name) still serves.")
            }
            aside.discard()
        } catch {
            aside.putBack()
            update(Set(configuration.folders))
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

    private func nothingToMove(_ name: String) -> PluginError {
        let generations = calls.registry.table.generations
        guard let generation = generations.first(where: { $0.name == name }) else {
            let names = Set(records.values.compactMap { $0.claimedModule?.manifest.name })
            return PluginError(
                .unknownModule,
                "There is no module “\(name.shortened)”.\(didYouMean(name, names.sorted()))")
        }
        let reason =
            generation.isInProgram
            ? "was registered by the program, which can unregister it."
            : "is linked into the program, and stays with it."
        return PluginError(.conflict, "\(generation.label) has no file that could be moved: it \(reason)")
    }
}
