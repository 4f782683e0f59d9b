internal import FoundationEssentials
internal import Glibc
internal import PluginABI
internal import PluginFile
internal import PluginHost

/// Looks at one file in a process of its own, so that a module that crashes or hangs is an answer and no accident.
struct Inspection: Sendable {
    static let defaultDeadline = Duration.seconds(10)
    private static let reportLimit = 64 << 20

    let file: String
    let deadline: Duration
    /// What is started; it writes an ``InspectionReport`` on the report descriptor.
    var executable = "/proc/self/exe"
    var arguments: [String]

    init(file: String, trustsEveryone: Bool, deadline: Duration?) {
        self.file = file
        self.deadline = deadline ?? Self.defaultDeadline
        let seconds = Int((self.deadline / .seconds(1)).rounded(.up)) + 1
        arguments = ["pluginhost", InspectionChild.word, trustsEveryone ? "trust" : "check", "\(seconds)", file]
    }

    /// What the file says about itself.
    func run() async throws(PluginError) -> Value {
        try await withTaskExecutorPreference(BlockingExecutor.shared) { () async throws(PluginError) in
            try inspect()
        }
    }

    private func inspect() throws(PluginError) -> Value {
        guard file.utf8.count < PATH_MAX else {
            throw PluginError(
                .fileNotFound,
                "There is no file “\(file.shortened)”: a path has at most \(PATH_MAX - 1) bytes, and this one has "
                    + "\(file.utf8.count).")
        }
        var status = stat()
        if stat(file, &status) != 0, errno == ENOENT, lstat(file, &status) != 0 {
            throw PluginError(.fileNotFound, "There is no file \(file).")
        }
        var environment = ProcessInfo.processInfo.environment
        // A crash is this command's answer; a report by the Swift runtime would only delay it.
        environment["SWIFT_BACKTRACE"] = "enable=no"
        let child = try ChildProcess(executable: executable, arguments: arguments, environment: environment)
        let (bytes, ending) = child.collect(deadline: deadline, limit: Self.reportLimit)
        if let report = InspectionReport(bytes) { return try report.outcome.get() }
        switch ending {
        case .overdue:
            throw PluginError(
                .inspectionTimedOut,
                "\(file) was not read in \(deadline.formattedSeconds); its code hangs, or needs a longer '--timeout'.")
        case .killed(let signal):
            throw PluginError(
                .inspectionCrashed,
                "\(file) crashes when its code is run: \(SignalName.of(signal)). A host would die of it.")
        case .exited(let code):
            throw PluginError(
                .inspectionCrashed,
                "\(file) ends the process with exit code \(code) when its code is run. A host would end with it.")
        }
    }
}

/// What the child tells its parent: `{"report": …}` or `{"error": …}`, on one line.
struct InspectionReport {
    let outcome: Result<Value, PluginError>

    init(_ outcome: Result<Value, PluginError>) { self.outcome = outcome }

    /// nil where the text is not complete.
    init?(_ bytes: [UInt8]) {
        guard bytes.last == UInt8(ascii: "\n"), let value = try? Value(jsonMessage: bytes) else { return nil }
        if let report = value["report"] {
            outcome = .success(report)
        } else if let error = value["error"], let code = error["code"]?.string {
            let message = error["message"]?.string ?? ""
            outcome = .failure(PluginError(.init(rawValue: code), message, source: error["source"]?.string))
        } else {
            return nil
        }
    }

    var text: String {
        switch outcome {
        case .success(let report): Value.map(["report": report]).json + "\n"
        case .failure(let error): Value.map(["error": error.record]).json + "\n"
        }
    }
}

extension Duration {
    /// "10 s", "0.5 s".
    fileprivate var formattedSeconds: String {
        let seconds = self / .seconds(1)
        return seconds == seconds.rounded() ? "\(Int(seconds)) s" : "\(seconds) s"
    }
}
