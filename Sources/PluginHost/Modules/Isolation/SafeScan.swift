import Dispatch
import Glibc
import PluginABI
import PluginFile
import Synchronization

/// The safe scan: scan processes open files before the host does, so that a file which crashes, exits or hangs does no
/// harm to the host. They also report the names of the files' modules.
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

        fileprivate mutating func merge(_ other: Findings) {
            failures.merge(other.failures) { $1 }
            names.merge(other.names) { $1 }
        }
    }

    /// The share of the time limit that a file may take if it is not the only one in its process. After that, it is
    /// opened alone.
    private static let patienceShare = 0.25

    /// Opens files in scan processes. Must be called before the host opens them.
    func open(_ files: [StagedFile]) -> Findings {
        let findings = Mutex(Findings())
        let suspects = Mutex<[StagedFile]>([])
        let batches = (files.count + ScanProcess.filesMax - 1) / ScanProcess.filesMax
        // As many processes at a time as there are processors, with equal work.
        DispatchQueue.concurrentPerform(iterations: batches) { batch in
            let found = scan(files[files.count * batch / batches..<files.count * (batch + 1) / batches])
            findings.withLock { $0.merge(found.findings) }
            suspects.withLock { $0 += found.suspects }
        }
        let alone = suspects.withLock(\.self)
        DispatchQueue.concurrentPerform(iterations: alone.count) { index in
            let found = scanAlone(alone[index])
            findings.withLock { $0.merge(found) }
        }
        return findings.withLock(\.self)
    }

    /// Opens files in one process after another.
    ///
    /// - Returns: What was found, and the files that must be opened alone, since another file in the same process may
    ///   have caused the failure.
    private func scan(_ files: ArraySlice<StagedFile>) -> (findings: Findings, suspects: [StagedFile]) {
        var (findings, suspects) = (Findings(), [StagedFile]())
        var rest = files
        while !rest.isEmpty {
            guard rest.count > 1 else {
                findings.merge(scanAlone(rest.removeFirst()))
                break
            }
            do throws(PluginError) {
                let outcome = try run(rest, limit * Self.patienceShare)
                // After a file that ends the process or hangs, another process opens the remaining files.
                for (finding, name) in zip(outcome.findings, outcome.names) {
                    let file = rest.removeFirst()
                    findings.names[file.number] = name
                    if finding != .passed { suspects.append(file) }
                    if finding.isUnfinished { break }
                }
            } catch {
                for file in rest { findings.failures[file.number] = error }
                break
            }
        }
        return (findings, suspects)
    }

    private func scanAlone(_ file: StagedFile) -> Findings {
        var findings = Findings()
        do throws(PluginError) {
            let outcome = try run([file], limit)
            findings.names[file.number] = outcome.names[0]
            if outcome.findings[0] != .passed {
                findings.failures[file.number] = error(file, outcome.findings[0], outcome)
            }
        } catch {
            findings.failures[file.number] = error
        }
        return findings
    }

    private func run(_ files: ArraySlice<StagedFile>, _ limit: Duration) throws(PluginError) -> ScanProcess.Outcome {
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
