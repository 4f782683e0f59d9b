import Dispatch
import Glibc
import PluginABI
import PluginFile
import Synchronization

/// The safe scan: files are opened by scan processes before the host opens them, so that a file which crashes, exits or
/// hangs does no harm to the host, and the host knows the names of their modules.
final class SafeScan: Sendable {
    private let workers: Workers
    /// How long the constructors or the entry function of a file may take.
    private let limit: Duration
    private let lastProblem = Mutex<PluginError?>(nil)

    /// - Parameter limit: How long the constructors or the entry function of a file may take.
    init(_ workers: Workers, limit: Duration) { (self.workers, self.limit) = (workers, limit) }

    /// The reason why files cannot be scanned; `nil` if they can, or if there were none to scan.
    var problem: PluginError? { lastProblem.withLock(\.self) }

    /// The results of a scan, by the numbers of the files.
    struct Findings: Sendable {
        /// The errors of the files that the host must not open.
        var failures: [UInt64: PluginError] = [:]
        /// The names of the modules, which are not checked.
        var names: [UInt64: String] = [:]
    }

    /// Opens files in scan processes. Must be called before the host opens them.
    func open(_ files: [StagedFile]) -> Findings {
        let findings = Mutex(Findings())
        let batches = (files.count + ScanProcess.filesMax - 1) / ScanProcess.filesMax
        // As many processes at a time as there are processors, with equal work.
        DispatchQueue.concurrentPerform(iterations: batches) { batch in
            let found = scan(files[files.count * batch / batches..<files.count * (batch + 1) / batches])
            findings.withLock { findings in
                findings.failures.merge(found.failures) { $1 }
                findings.names.merge(found.names) { $1 }
            }
        }
        return findings.withLock(\.self)
    }

    /// Opens files in one process after another.
    private func scan(_ files: ArraySlice<StagedFile>) -> Findings {
        var findings = Findings()
        var rest = files
        while !rest.isEmpty {
            do throws(PluginError) {
                let outcome = try run(rest)
                let isAlone = rest.count == 1
                // After a file that ends the process or hangs, another process goes on.
                for (finding, name) in zip(outcome.findings, outcome.names) {
                    let file = rest.first!
                    findings.names[file.number] = name
                    if finding != .passed {
                        findings.failures[file.number] =
                            isAlone ? error(file, finding, outcome) : try failureAlone(file, &findings)
                    }
                    rest.removeFirst()
                    if finding.isUnfinished { break }
                }
            } catch {
                for file in rest { findings.failures[file.number] = error }
                return findings
            }
        }
        return findings
    }

    /// Opens a file alone: another file of its process may be to blame, and only seem to have passed.
    private func failureAlone(
        _ file: StagedFile, _ findings: inout Findings
    ) throws(PluginError) -> PluginError? {
        let outcome = try run([file])
        findings.names[file.number] = outcome.names[0]
        return outcome.findings[0] == .passed ? nil : error(file, outcome.findings[0], outcome)
    }

    private func run(_ files: ArraySlice<StagedFile>) throws(PluginError) -> ScanProcess.Outcome {
        do throws(PluginError) {
            let program = try workers.program(for: files.first!)
            let outcome = try ScanProcess.run(files, program: program, limit: limit, names: workers.areUsed)
            lastProblem.withLock { $0 = nil }
            return outcome
        } catch {
            let problem = PluginError(
                error.code, "New files are not opened, because they cannot be scanned. \(error.message)")
            lastProblem.withLock { $0 = problem }
            throw error
        }
    }

    // MARK: Errors

    private func error(
        _ file: StagedFile, _ finding: ScanProcess.Finding, _ outcome: ScanProcess.Outcome
    ) -> PluginError {
        switch finding {
        case .refused(let reason):
            return PluginError(
                .openFailed, "\(file.original) cannot be opened: \(file.withOriginalPaths(reason).printable).")
        case .hasNoEntry: return PluginError(.invalidFile, "\(file.original) does not export \(PLUGIN_ENTRY_SYMBOL).")
        case .opening: return error(file, "a constructor", outcome)
        case .entering: return error(file, "its entry function", outcome)
        case .untouched, .passed:
            return PluginError(
                .openFailed,
                "\(file.original) was not opened: the scan process \(outcome.ending) before it opened the "
                    + "file.\(outcome.lastSentence)")
        }
    }

    private func error(_ file: StagedFile, _ place: String, _ outcome: ScanProcess.Outcome) -> PluginError {
        guard outcome.ending != .overdue else {
            return PluginError(
                .deadlineExceeded,
                "\(file.original) was not opened: \(place) did not return within \(limit) in a scan process. The file is "
                    + "not scanned again until it changes.\(outcome.lastSentence)")
        }
        return PluginError(
            .moduleCrashed,
            "\(file.original) was not opened: \(place) \(outcome.ending) in a scan process, and would have "
                + "ended the host. The file is not scanned again until it changes.\(outcome.lastSentence)")
    }
}
