internal import FoundationEssentials
internal import Glibc
internal import PluginABI
internal import PluginFile
internal import PluginHost

/// All checks of one file. Each step that runs code of the module runs in a process of its own: if the module crashes
/// or hangs, that step has failed, and the others continue.
struct ModuleCheck: Sendable {
    static let defaultDeadline = Duration.seconds(30)

    let file: String
    /// The files of modules that the module requires.
    let others: [String]
    let trustsEveryone: Bool
    let seed: UInt64
    let callsActions: Bool
    /// Whether the module runs in a process of its own, which the host of the check starts.
    let isolates: Bool
    let configuration: CheckedConfiguration
    /// The time that each step may take.
    let deadline: Duration
    /// The file of the last version, with which the module is compared.
    let lastVersion: String?
    /// The file of a façade that must be up to date.
    let facade: String?
    let symbolizer = Symbolizer()

    struct Report: Sendable {
        var module: CheckedManifest?
        var results: [CheckResult] = []
        var failures: Int { results.count { $0.outcome == .failure } }
        /// Whether a check that depends on the seed has failed.
        var failsBySeed: Bool {
            results.contains { $0.outcome == .failure && CheckStep(rawValue: $0.check)?.callsActions == true }
        }
    }

    /// - Parameter tell: Called with each result as soon as it is known.
    /// - Throws: `fileNotFound`; the error of one of the other files.
    func run(_ tell: (CheckResult) -> Void) throws(PluginError) -> Report {
        var report = Report()
        func add(_ result: CheckResult) {
            report.results.append(result)
            tell(result)
        }
        try Self.requireFile(path)
        let inspected: Value
        do throws(PluginError) {
            inspected = try inspect(path)
        } catch {
            let location = try location(of: error)
            for var result in Self.results(of: error) {
                if let location, !result.findings.isEmpty { result.findings[0].location = location }
                add(result)
            }
            return report
        }
        let manifest = CheckedManifest(inspected["manifest"] ?? nil)
        report.module = manifest
        for other in others { try examine(other, besides: manifest.name) }
        add(CheckResult(check: "description", summary: "\(manifest.name) \(manifest.version)"))
        let isSealed = inspected["sealed"] == true
        add(
            CheckResult(
                check: "manifest",
                summary: isSealed ? "read from its seal, matches its schema" : "matches its schema and the functions"))
        if let misspelling = configuration.misspelling(of: manifest.name) { add(misspelling) }
        let ofFile = FileChecks.all(inspected, file: path)
        for result in ofFile { add(result) }
        if let lastVersion {
            add(VersionCheck.against(try self.manifest(ofLastVersion: lastVersion), inspected["manifest"] ?? nil))
        }
        if let facade { add(VersionCheck.facade(facade, inspected["manifest"] ?? nil)) }
        // A host ignores a file whose name is wrong.
        var starts = !ofFile.contains { $0.check == "names" && $0.outcome == .failure }
        // For each location of a crash, the check that found it first.
        var crashes: [CodeLocation: String] = [:]
        for step in CheckStep.allCases {
            let isLeftOut = step.callsActions && !callsActions
            guard starts, !isLeftOut else {
                let reason = isLeftOut ? "left out because of '--no-calls'" : "not tried: it does not start"
                add(CheckResult(check: step.rawValue, summary: reason, isSkipped: true))
                continue
            }
            let text = inspected["manifest"]?.json ?? ""
            var (result, hasStarted) = try perform(step, manifest: text)
            if step == .lifecycle { starts = hasStarted }
            if let crash = result.findings.first, let location = crash.location, crash.isCrash {
                if let first = crashes[location] {
                    result.findings[0].advice = "It is the crash that the check '\(first)' has found."
                } else {
                    crashes[location] = result.check
                }
            }
            add(result)
        }
        return report
    }

    private var path: String { Self.absolute(file) }

    /// Returns a path in the form that the host uses: absolute, without `.`, `..` and redundant slashes.
    static func absolute(_ path: String) -> String { URL(filePath: path).standardizedFileURL.path }

    private static func requireFile(_ path: String) throws(PluginError) {
        guard fileStatus(path) == nil, errno == ENOENT || errno == ENAMETOOLONG else { return }
        let isLink = fileStatus(path, followingLink: false) != nil
        throw PluginError(
            .fileNotFound,
            isLink ? "\(path) is a link to a file that does not exist." : "There is no file \(path.shortened).")
    }

    private func inspect(_ path: String) throws(PluginError) -> Value {
        try Inspection(file: path, trustsEveryone: trustsEveryone, deadline: deadline, endsSoon: true).run()
    }

    private func manifest(ofLastVersion file: String) throws(PluginError) -> Value {
        let path = Self.absolute(file)
        do throws(PluginError) {
            try Self.requireFile(path)
            return try inspect(path)["manifest"] ?? nil
        } catch {
            throw PluginError(error.code, "'--against \(file)': \(error.message)")
        }
    }

    /// Checks a file given with '--with'.
    private func examine(_ other: String, besides name: String) throws(PluginError) {
        let path = Self.absolute(other)
        do throws(PluginError) {
            try Self.requireFile(path)
            guard CheckedManifest(try inspect(path)["manifest"] ?? nil).name == name else { return }
        } catch {
            throw PluginError(error.code, "'--with \(other)': \(error.message)")
        }
        throw PluginError(
            .invalidFile,
            "'--with \(other)': this module has the same name as the module under test, \(name). Pass only modules that "
                + "it requires.")
    }

    /// Returns the results for a file that is not a valid module.
    private static func results(of error: PluginError) -> [CheckResult] {
        func failed(_ check: String, _ message: String) -> CheckResult {
            CheckResult(check: check, findings: [CheckResult.Finding(isFailure: true, message: message)])
        }
        if FileChecks.isMissingLibrary(error) {
            return [
                failed("libraries", error.message + " Put it next to the module, and link with -Wl,-rpath,'$ORIGIN'.")
            ]
        }
        guard error.code == .invalidManifest || error.code == .invalidPattern else {
            return [failed("description", error.message)]
        }
        return [CheckResult(check: "description"), failed("manifest", error.message)]
    }

    /// Returns the location at which the code of the file crashes when it is opened, if that is the error of its
    /// inspection. Opens the file once more.
    private func location(of error: PluginError) throws(PluginError) -> CodeLocation? {
        guard error.code == .inspectionCrashed else { return nil }
        return try perform(.lifecycle, manifest: "{}", isolates: false).result.findings.first?.location
    }

    // MARK: One step

    /// Converts an address in the copy of a file that a host has opened to one in the file itself, since the copy may
    /// be gone. Returns `nil` if it is in none of the files of this check: the module can report anything.
    private func inOriginal(_ address: CodeAddress) -> CodeAddress? {
        let name = address.file.fileName
        let file = ([path] + others.map(Self.absolute)).enumerated().first { number, file in
            let original = file.fileName
            return name == original || name == CheckChild.nameOfCopy(number, original)
        }?.element
        return file.map { CodeAddress(file: $0, offset: address.offset) }
    }

    /// How many addresses of a crash are looked up, the innermost first.
    private static let addressesMax = 16

    /// Runs a step in a child process. Returns its result, and whether the module has become active, which only
    /// `lifecycle` reports.
    private func perform(
        _ step: CheckStep, manifest: String, isolates: Bool? = nil
    ) throws(PluginError) -> (result: CheckResult, hasStarted: Bool) {
        var result = CheckResult(check: step.rawValue)
        let folder = try makeTemporaryFolder("\(temporaryFolder)/pluginhost-check-XXXXXX")
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try CheckChild(
            step: step, seconds: UInt32(max(1, (deadline / .seconds(1)).rounded(.up))), seed: seed,
            trustsEveryone: trustsEveryone, isolates: isolates ?? self.isolates, configuration: configuration,
            files: [path] + others.map(Self.absolute), manifest: manifest
        ).write(to: folder)
        let (bytes, ending) = try ChildProcess(arguments: ["pluginhost", CheckChild.word, folder])
            .collect(deadline: deadline)
        let all = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        let stack = Array(
            all.lazy.compactMap { CodeAddress(line: $0) }.compactMap(inOriginal).prefix(Self.addressesMax))
        let lines = all.filter { CodeAddress(line: $0) == nil }
        let hasStarted = lines.first == "{\"started\":true}"
        func value(_ line: Substring?) -> Value? { line.flatMap { try? Value(jsonMessage: Array($0.utf8)) } }
        // Several threads may report the crash of an isolated module.
        let end = lines.firstIndex { $0.hasPrefix("{\"crash\":") } ?? lines.endIndex
        let crash = end < lines.endIndex ? value(lines[end]) : nil
        let last = value(lines[..<end].last)
        if case .exited(0) = ending, let last, last["check"] != nil {
            result = CheckResult(step.rawValue, told: last)
            for index in result.findings.indices {
                result.findings[index].address = result.findings[index].address.flatMap(inOriginal)
            }
            result.setLocations(symbolizer)
            return (result, hasStarted)
        }
        let call = last?["at"]?.string
        let location = call.map { " at \($0)" } ?? ""
        let advice = call != nil || step == .lifecycle ? step.advice : ""
        if let crash {
            let addresses = crash.list("stack").lazy.compactMap { CodeAddress($0) }.compactMap(inOriginal)
            addCrash(crash.text("crash"), during: call, Array(addresses.prefix(Self.addressesMax)), step, &result)
            return (result, hasStarted)
        }
        switch ending {
        case .killed(let signal):
            addCrash(SignalName.of(signal) + ".", during: call, stack, step, &result)
        case .overdue:
            let count = lines.count { $0.hasPrefix("{\"at\":") }
            let progress = call.map { ", after \(counted(count, "call")); the last to begin was \($0)" } ?? ""
            result.fail(
                "The check did not end within \(inSeconds(deadline)), its deadline\(progress). If the calls "
                    + "intentionally take longer, pass a longer '--timeout'.", advice: advice)
        case .exited(let code):
            result.fail(
                "It ends the process with exit code \(code)\(location): this would end the host, too. Never call exit.")
        }
        return (result, hasStarted)
    }

    /// Adds the finding that the module has ended its process.
    ///
    /// - Parameters:
    ///   - reason: How the process ended, as a sentence.
    ///   - call: What the module was doing.
    ///   - stack: The addresses of its code that ran.
    private func addCrash(
        _ reason: String, during call: String?, _ stack: [CodeAddress], _ step: CheckStep, _ result: inout CheckResult
    ) {
        let location = call.map { " at \($0)" } ?? ""
        let isExit = reason.hasPrefix("Its process ended with the exit code ")
        if isolates, isExit, !reason.contains("pluginhost-worker: ") {
            result.fail(
                "It ends its process\(location). \(reason) Calls that run in it then fail.",
                advice: "Never call exit.")
            return
        }
        // In a recursion through a few functions, some addresses occur again and again.
        let counts = Dictionary(stack.map { ($0, 1) }, uniquingKeysWith: +).values
        let isRecursion = stack.count == Self.addressesMax && counts.max() ?? 0 >= Self.addressesMax / 3
        result.fail(
            CheckResult.Finding.crashes + "\(location): \(reason)",
            advice: isRecursion
                ? "The function calls itself again and again, until the stack is full: end the recursion, or use a loop."
                : step.advice(onCrashDuring: call))
        result.findings[0].location = symbolizer.location(ofCrash: stack)
    }
}
