import PluginABI
import PluginFile
import Synchronization

/// What is wrong with the host's own: its threads, its journal, its memory.
struct OwnProblems: Sendable {
    var all: [PluginError] = []
    /// Those that the log has.
    var logged: [PluginError] = []
}

extension ChangeContext {
    /// Notes what is wrong with a folder, or with something else of that name, and tells it when it is new.
    func reportProblem(_ error: PluginError, _ folder: String) {
        guard folders.problems[folder] != error else { return }
        folders.problems[folder] = error
        tell(.problem(error))
    }

    /// Tells once what the host has lost, or is about to lose: its journal, the last of its memory maps, and for the time
    /// being what the kernel tells of its folders.
    func tellOwnProblems() {
        let lost = [disk.journal.problem, MapsBudget.shared.warning].compactMap(\.self)
        for problem in lost + [watcher.withLock { $0 }?.problem].compactMap(\.self)
        where !ownProblems.logged.contains(problem) {
            ownProblems.logged.append(problem)
            if lost.contains(problem) { ownProblems.all.append(problem) }
            core.settings.log(LogEntry(level: .warning, message: problem.message))
            tell(.problem(problem))
        }
    }

    /// Tells why routes and services of files do not stand, each reason once. To be called after every change of them, from
    /// any thread.
    func tellDeclarationProblems() {
        let present = published.folders.declarationProblems(registry.table)
        let news = toldDeclarationProblems.withLock { told in
            defer { told = Dictionary(present, uniquingKeysWith: { $1 }) }
            return present.filter { told[$0.key] != $0.error }
        }
        for problem in news { announcements.tell(.problem(problem.error)) }
    }
}
