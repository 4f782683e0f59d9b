internal import Foundation
internal import Glibc
internal import PluginABI
internal import PluginFile
internal import PluginHost

/// All checks of one file, each step that runs its code in a process of its own: a module that crashes or hangs has
/// failed a check, and the others go on.
struct ModuleCheck: Sendable {
    static let defaultDeadline = Duration.seconds(30)

    let file: String
    /// Files of modules that it requires.
    let others: [String]
    let trustsEveryone: Bool
    let seed: UInt64
    let callsActions: Bool
    /// For each step.
    let deadline: Duration

    struct Report: Sendable {
        var module: CheckedManifest?
        var results: [CheckResult] = []
        var failures: Int { results.count { $0.outcome == .failure } }
        /// Whether something failed that depends on the seed.
        var failsBySeed: Bool {
            results.contains { $0.outcome == .failure && CheckStep(rawValue: $0.check)?.callsActions == true }
        }
    }

    /// - Parameter tell: Is called with each result as it comes.
    /// - Throws: `fileNotFound`; and what is wrong with one of the other files.
    func run(_ tell: (CheckResult) -> Void) async throws(PluginError) -> Report {
        var report = Report()
        func add(_ result: CheckResult) {
            report.results.append(result)
            tell(result)
        }
        try Self.requireFile(path)
        let inspected: Value
        do throws(PluginError) {
            inspected = try await Inspection(file: path, trustsEveryone: trustsEveryone, deadline: deadline).run()
        } catch {
            for result in Self.results(of: error) { add(result) }
            return report
        }
        let manifest = CheckedManifest(inspected["manifest"] ?? nil)
        report.module = manifest
        for other in others { try await examine(other, besides: manifest.name) }
        add(CheckResult(check: "description", summary: "\(manifest.name) \(manifest.version)"))
        add(CheckResult(check: "manifest", summary: "fits its schema and the functions"))
        let ofFile = FileChecks.all(inspected, file: path)
        for result in ofFile { add(result) }
        // A host does not look at a file of such a name.
        var starts = !ofFile.contains { $0.check == "names" && $0.outcome == .failure }
        for step in CheckStep.allCases {
            let isLeftOut = step.callsActions && !callsActions
            guard starts, !isLeftOut else {
                let reason = isLeftOut ? "left out, for '--no-calls'" : "not tried: it does not start"
                add(CheckResult(check: step.rawValue, summary: reason, isSkipped: true))
                continue
            }
            let text = inspected["manifest"]?.json ?? ""
            let (result, hasStarted) = try perform(step, manifest: text)
            if step == .lifecycle { starts = hasStarted }
            add(result)
        }
        return report
    }

    private var path: String { Self.absolute(file) }

    /// As the host calls it: without `.`, `..` and slashes that say nothing.
    private static func absolute(_ path: String) -> String { URL(filePath: path).standardizedFileURL.path }

    private static func requireFile(_ path: String) throws(PluginError) {
        guard fileStatus(path) == nil, errno == ENOENT || errno == ENAMETOOLONG else { return }
        let isLink = fileStatus(path, followingLink: false) != nil
        throw PluginError(
            .fileNotFound,
            isLink ? "\(path) is a link to a file that is not there." : "There is no file \(path.shortened).")
    }

    /// Looks at a file of '--with'.
    private func examine(_ other: String, besides name: String) async throws(PluginError) {
        let path = Self.absolute(other)
        do throws(PluginError) {
            try Self.requireFile(path)
            let inspection = Inspection(file: path, trustsEveryone: trustsEveryone, deadline: deadline)
            guard CheckedManifest(try await inspection.run()["manifest"] ?? nil).name == name else { return }
        } catch {
            throw PluginError(error.code, "'--with \(other)': \(error.message)")
        }
        throw PluginError(
            .invalidFile,
            "'--with \(other)': this file has the name of the module under test, \(name). Give only modules that it "
                + "requires.")
    }

    /// What keeps a file from being a module at all.
    private static func results(of error: PluginError) -> [CheckResult] {
        func failed(_ check: String, _ message: String) -> CheckResult {
            var result = CheckResult(check: check)
            result.fail(message)
            return result
        }
        if FileChecks.isMissingLibrary(error) {
            return [
                failed("libraries", error.message + " Put it beside the module, and link with -Wl,-rpath,'$ORIGIN'.")
            ]
        }
        guard error.code == .invalidManifest || error.code == .invalidPattern else {
            return [failed("description", error.message)]
        }
        return [CheckResult(check: "description"), failed("manifest", error.message)]
    }

    // MARK: One step

    /// The result of a step, and whether the module was active in it, which `lifecycle` tells.
    private func perform(
        _ step: CheckStep, manifest: String
    ) throws(PluginError) -> (result: CheckResult, hasStarted: Bool) {
        var result = CheckResult(check: step.rawValue)
        let folder = try makeTemporaryFolder("\(NSTemporaryDirectory())/pluginhost-check-XXXXXX")
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try CheckChild(
            step: step, seconds: UInt32(max(1, (deadline / .seconds(1)).rounded(.up))), seed: seed,
            trustsEveryone: trustsEveryone, files: [path] + others.map(Self.absolute), manifest: manifest
        ).write(to: folder)
        let (bytes, ending) = try ChildProcess(arguments: ["pluginhost", CheckChild.word, folder])
            .collect(deadline: deadline)
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        let hasStarted = lines.first == "{\"started\":true}"
        let last = lines.last.flatMap { try? Value(jsonMessage: Array($0.utf8)) }
        if case .exited(0) = ending, let last, last["check"] != nil {
            return (CheckResult(step.rawValue, told: last), hasStarted)
        }
        let call = last?["at"]?.string
        let place = call.map { " at \($0)" } ?? ""
        let advice = call != nil || step == .lifecycle ? " \(step.advice)" : ""
        switch ending {
        case .killed(let signal):
            result.fail("It crashes the process\(place): \(SignalName.of(signal)).\(advice)")
        case .overdue:
            let count = lines.count { $0.hasPrefix("{\"at\":") }
            let progress = call.map { ", after \(counted(count, "call")); the last to begin was \($0)" } ?? ""
            result.fail(
                "It came to no end in the \(inSeconds(deadline)) that each check has\(progress). If all of them take "
                    + "longer by intention, give a longer '--timeout'.\(advice)")
        case .exited(let code):
            result.fail(
                "It ends the process with exit code \(code)\(place): a host would end with it. Never call exit.")
        }
        return (result, hasStarted)
    }
}
