import PluginABI

// What hosts that were killed have left in the folders. Runs on the lifecycle queue.

extension Lifecycle {
    /// Puts back what a host has begun to change in the folders and was killed over.
    func recoverFolders() {
        for root in configuration.folders {
            var walk = FolderWalk(root, includesSubfolders: configuration.includesSubfolders)
            while let folder = walk.next() {
                do throws(PluginError) {
                    if !configuration.trustsEveryone { try Trust.check(folder: folder.path) }
                    try UndoFile.recover(in: VersionStore.resolved(folder.path))
                } catch {
                    // A folder that is not trusted is told when it is looked into.
                    if error.code != .untrusted { reportProblem(error, "\(folder.path) (left behind)") }
                }
                if configuration.includesSubfolders { _ = try? walk.read(folder) }
            }
        }
    }
}
