import PluginABI
import PluginFile
import Synchronization

/// The problems of the host itself: its threads, its journal, its memory.
struct OwnProblems: Sendable {
    var all: [PluginError] = []
    /// The problems that were logged.
    var logged: [PluginError] = []
}

extension ChangeContext {
    /// Records the problem of a folder, or of something else under that name, and reports it if it is new.
    func reportProblem(_ error: PluginError, _ folder: String) {
        guard folders.problems[folder] != error else { return }
        folders.problems[folder] = error
        tell(.problem(error))
    }

    /// Reports problems of the host itself, each once: the journal does not work, memory maps are running out, or
    /// folders cannot currently be watched.
    func tellOwnProblems() {
        let lost = [disk.journal.problem, MapsBudget.shared.warning, disk.scan?.problem].compactMap(\.self)
        for problem in lost + [watcher.withLock { $0 }?.problem].compactMap(\.self)
        where !ownProblems.logged.contains(problem) {
            ownProblems.logged.append(problem)
            if lost.contains(problem) { ownProblems.all.append(problem) }
            core.settings.log(LogEntry(level: .warning, message: problem.message))
            tell(.problem(problem))
        }
    }

    /// Reports why routes and services of files are not in effect, each reason once. Must be called after every change
    /// of routes or services; may be called from any thread.
    func tellDeclarationProblems() {
        let present = published.folders.declarationProblems(registry.table)
        let news = toldDeclarationProblems.withLock { told in
            defer { told = Dictionary(present, uniquingKeysWith: { $1 }) }
            return present.filter { told[$0.key] != $0.error }
        }
        for problem in news { announcements.tell(.problem(problem.error)) }
    }
}
