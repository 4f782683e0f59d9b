import CPluginHost
import Glibc
import PluginABI

/// A file whose code runs: the crash report names it meanwhile, and the journal blames it if the process ends.
struct Blame: Sendable {
    let file: StagedFile
    /// Nil where nothing is remembered: the program cannot go on without what is linked into it.
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
    ///   - step: What of the start it is; nil for what is not held against the file.
    ///   - name: For the crash report. Default: that of the step.
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

    /// The journal alone, for what goes on without a thread of its own; ``end(_:)`` is to follow.
    func begin(_ step: Journal.Step?) {
        guard let step else { return }
        journal?.begin(step, file: file.original, digest: file.digest, size: file.size, number: file.number)
    }

    func end(_ step: Journal.Step?) {
        if let step { journal?.end(step, file.number) }
    }
}
