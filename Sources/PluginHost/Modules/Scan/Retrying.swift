import Glibc
import PluginABI
import PluginFile
import Synchronization

// Failures that pass by themselves (a full disk, no descriptors, no memory) are tried again until the folders are the truth
// again. Runs on the lifecycle queue.

extension PluginError {
    /// Whether what failed may succeed later although nobody touches the file: the system was short of something.
    ///
    /// Told by the words for the error's number, since the dynamic linker gives nothing else.
    var canPass: Bool {
        guard [.stagingFailed, .unreadable, .openFailed].contains(code) else { return false }
        return Self.passing.contains { message.contains($0) }
    }

    private static let passing = [ENOSPC, EDQUOT, EMFILE, ENFILE, ENOMEM, EAGAIN, EIO].map { describe(errno: $0) }
}

extension FileRecord {
    /// Whether its failure may pass although nobody touches the file.
    var canPass: Bool { if case .failed(let error, _) = content { error.canPass } else { false } }
}

extension Lifecycle {
    /// After how long a failure that may pass is tried again; each time twice as long, up to the last.
    static let firstRetryDelay = Duration.milliseconds(250)
    private static let lastRetryDelay = Duration.seconds(30)

    /// Sees to it that what failed for want of something is tried again.
    func retryLater() {
        guard configuration.watches else { return }
        let (delay, folders) = state.withLock { state -> (Duration?, Set<String>) in
            let folders = configuration.folders.filter { folder in
                state.problems[folder]?.canPass == true
                    || state.records.values.contains { $0.canPass && $0.folder.hasBytes(of: folder) }
                    || state.unkept.contains { $0.path.beginsWithBytes(of: folder) }
                    || state.declarations.values.contains {
                        $0.problem?.canPass == true && $0.folder.hasBytes(of: folder)
                    }
            }
            guard !folders.isEmpty else {
                state.retryDelay = Self.firstRetryDelay
                return (nil, [])
            }
            guard !state.isRetrying, !state.isStopped else { return (nil, []) }
            state.isRetrying = true
            defer { state.retryDelay = min(state.retryDelay * 2, Self.lastRetryDelay) }
            return (state.retryDelay, Set(folders))
        }
        guard let delay else { return }
        queue.async(after: delay) { [weak self] in
            self?.state.withLock { $0.isRetrying = false }
            self?.updateAgain(folders)
        }
    }

    /// Reads folders again, and tries what has failed for want of something.
    func updateAgain(_ folders: Set<String>) {
        state.withLock { $0.retriesFailures = true }
        update(folders)
        state.withLock { $0.retriesFailures = false }
    }
}
