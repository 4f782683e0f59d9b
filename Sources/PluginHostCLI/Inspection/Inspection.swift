internal import Glibc
internal import PluginABI
internal import PluginFile
internal import PluginHost

/// Inspects one file: by its seal, if it has one, which runs no code; otherwise in a process of its own, so that a
/// crash or hang of the module only results in an error. That process is a scan process or, if none is tried or the
/// file does not pass there, a child process that runs this program.
struct Inspection: Sendable {
    static let defaultDeadline = Duration.seconds(10)

    let file: String
    let deadline: Duration
    let trustsEveryone: Bool
    /// Whether a scan process is tried first, which is quicker.
    let isScanned: Bool
    /// The program that is started. It must report as ``InspectionChild`` does.
    var executable = "/proc/self/exe"
    var arguments: [String]

    /// - Parameter endsSoon: Whether this program ends soon, and may keep the description of the file until then.
    init(file: String, trustsEveryone: Bool, deadline: Duration?, endsSoon: Bool) {
        (self.file, self.trustsEveryone, isScanned) = (file, trustsEveryone, endsSoon)
        self.deadline = deadline ?? Self.defaultDeadline
        let seconds = Int((self.deadline / .seconds(1)).rounded(.up)) + 1
        arguments = ["pluginhost", InspectionChild.word, trustsEveryone ? "trust" : "check", "\(seconds)", file]
    }

    /// Returns the description of the file. Blocks this thread until the process has ended, or the deadline has passed.
    func run() throws(PluginError) -> Value {
        guard file.utf8.count < PATH_MAX else {
            throw PluginError(
                .fileNotFound,
                "There is no file “\(file.shortened)”: a path can have at most \(PATH_MAX - 1) bytes, but this one has "
                    + "\(file.utf8.count).")
        }
        if fileStatus(file) == nil, errno == ENOENT, fileStatus(file, followingLink: false) == nil {
            throw PluginError(.fileNotFound, "There is no file \(file).")
        }
        let end = ContinuousClock.now + deadline
        if let report = try PluginHost.inspectSeal(file: file, trustsEveryone: trustsEveryone) { return report.json }
        if isScanned,
            let report = try PluginHost.inspectByScan(
                file: file, trustsEveryone: trustsEveryone, timeout: deadline)
        {
            return report.json
        }
        let child = try ChildProcess(executable: executable, arguments: arguments)
        let (bytes, ending) = child.collect(deadline: end - .now)
        let told = bytes.split(separator: UInt8(ascii: "\n")).compactMap { try? Value(jsonMessage: Array($0)) }
        if let report = told.last?["report"] { return report }
        if case .map(var report) = told.first?["untyped"] {
            report["notes"] = ["The types are not known: the code of the module \(ending) when asked for them."]
            return .map(report)
        }
        if let error = told.last?["error"], error["code"]?.string != nil { throw PluginError(error) }
        switch ending {
        case .overdue:
            throw PluginError(
                .inspectionTimedOut,
                "\(file) was not read within \(inSeconds(deadline)). Its code hangs, or needs a longer '--timeout'.")
        case .killed(let signal):
            throw PluginError(
                .inspectionCrashed,
                "\(file) crashes when its code is run: \(SignalName.of(signal)). This would crash a host, too.")
        case .exited(let code):
            throw PluginError(
                .inspectionCrashed,
                "\(file) ends the process with exit code \(code) when its code is run. This would end a host, too.")
        }
    }
}
