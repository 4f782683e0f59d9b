import CPluginHost
import Glibc
import PluginABI

/// A file that is blamed while its code runs: the crash report names it, and the journal blames it if the process ends.
struct Blame: Sendable {
    let file: StagedFile
    /// The journal; `nil` for a module that is part of the program, which is not quarantined since the program cannot
    /// run without it.
    let journal: Journal?

    init(_ file: StagedFile, _ journal: Journal?) {
        self.file = file
        self.journal = file.source == .file ? journal : nil
    }

    /// Whether the file is being started.
    var isStarting: Bool { journal?.isStarting(file.number) == true }

    /// Runs code of the file on this thread.
    ///
    /// - Parameters:
    ///   - step: The step of the file's start that the code belongs to; `nil` if the file is not to be blamed for it.
    ///   - name: The name of the code in the crash report. Default: the name of the step.
    func during<Result, Failure: Error>(
        _ step: Journal.Step?, _ name: String? = nil, _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let label = strdup("running the \(name ?? step?.rawValue ?? "code") of \(file.original.printable)")
        let (outer, outerFile) = (plugin_host_step(), plugin_host_step_file())
        plugin_host_set_step(label, file.number)
        begin(step)
        defer {
            end(step)
            plugin_host_set_step(outer, outerFile)
            free(label)
        }
        return try body()
    }

    /// Records in the journal alone that a step begins, for code that continues without a thread of its own.
    /// ``end(_:)`` must follow.
    func begin(_ step: Journal.Step?) {
        guard let step else { return }
        journal?.begin(step, file: file.original, digest: file.digest, size: file.size, number: file.number)
    }

    func end(_ step: Journal.Step?) {
        if let step { journal?.end(step, file.number) }
    }
}
