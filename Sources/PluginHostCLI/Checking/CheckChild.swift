internal import FoundationEssentials
internal import Glibc
internal import PluginABI
internal import PluginHost

/// The child process of a check: runs one step, reports its result, and ends.
struct CheckChild: Codable, Sendable {
    /// The hidden command of the child process. Its only argument is a folder of its own with a file that describes the
    /// task: manifests can exceed the maximum length of an argument.
    static let word = "check-in-this-process"

    let step: CheckStep
    /// The number of seconds after which the parent ends the process.
    let seconds: UInt32
    let seed: UInt64
    let trustsEveryone: Bool
    /// Whether the modules run in processes of their own.
    let isolates: Bool
    let configuration: CheckedConfiguration
    /// The module's file, followed by the files of modules that it requires.
    let files: [String]
    /// The manifest as JSON.
    let manifest: String

    private static func file(in folder: String) -> String { "\(folder)/check.json" }

    func write(to folder: String) throws(PluginError) {
        guard let text = try? JSONEncoder().encode(self) else {
            throw PluginError(.checkFailed, "The description of the check of \(files[0]) cannot be encoded.")
        }
        try writeFile(text, to: Self.file(in: folder), mode: 0o600)
    }

    static func run(_ arguments: [String]) async -> Never {
        guard let folder = arguments.first, let text = try? Data(contentsOf: URL(filePath: file(in: folder))),
            let child = try? JSONDecoder().decode(CheckChild.self, from: text),
            let manifest = try? Value(json: child.manifest)
        else { _exit(ExitCode.usage.rawValue) }
        let step = child.step
        ChildReport.begin(endingAfter: child.seconds + 1)
        endWithParent(removing: folder)
        PluginHost.installFatalSignalReport()
        ChildReport.reportAddresses()
        let copies = step == .replacement ? try? child.withCopies(in: folder) : nil
        let module = CheckedModule(manifest: CheckedManifest(manifest), check: copies ?? child, folder: folder)
        let output = CheckedOutput(folder: folder)
        var result = await perform(step, module)
        // Output is examined in only two steps, so that it is not reported for each step.
        if step == .lifecycle || step == .replies { output.examine(&result) }
        ChildReport.end(with: result.record)
    }

    /// Removes the folder and ends this process, with all processes that the module has started, when the parent has
    /// ended for any reason.
    private static func endWithParent(removing folder: String) {
        // If no thread can be created, this process ends at the parent's deadline, provided that the parent lives.
        try? DetachedThread.start("pluginhost.parent") {
            var parent = pollfd(fd: ChildProcess.reportDescriptor, events: 0, revents: 0)
            while poll(&parent, 1, -1) < 0, errno == EINTR {}
            guard parent.revents & Int16(POLLHUP) != 0 else { return }
            // Repeated, because the host is still running and may create files in the folder.
            for _ in 0..<100 where access(folder, F_OK) == 0 { try? FileManager.default.removeItem(atPath: folder) }
            kill(0, SIGKILL)
        }
    }

    private static func perform(_ step: CheckStep, _ module: CheckedModule) async -> CheckResult {
        var result = CheckResult(check: step.rawValue)
        if step == .lifecycle {
            LifecycleCheck(module: module, started: { ChildReport.add(["started": true]) }).run(&result)
            return result
        }
        let log = CheckedModule.Log()
        do throws(PluginError) {
            let host = try module.start(log: log)
            let check = ActionCheck(module: module, host: host) { ChildReport.add(["at": .string($0)]) }
            switch step {
            case .lifecycle: break
            case .unknown: await check.unknown(&result)
            case .parameters: await check.parameters(&result)
            case .hostile: await check.hostile(&result)
            case .concurrent: await check.concurrent(&result)
            case .replies: await check.replies(&result, log: log)
            case .objects: await check.objects(&result)
            case .arguments: await check.arguments(&result)
            case .replacement: await check.replacement(&result)
            }
            module.endIfCrashed(host)
            result.setAddresses(host.function(of:))
        } catch {
            result.fail(error.message)
        }
        return result
    }
}
