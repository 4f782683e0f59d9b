internal import CPluginHost
internal import Foundation
internal import Glibc
internal import PluginABI
internal import PluginHost

/// What the child process of a check does: runs one step, reports, and ends.
enum CheckChild {
    /// The hidden word in front of its arguments.
    static let word = "check-in-this-process"

    /// The name of the file in the child's folder that holds the manifest. Not an argument: those are bounded.
    static let manifestName = "manifest.json"

    /// The arguments: the step, the seconds after which the kernel ends the process, the seed, `trust` or `check`, a
    /// folder of its own with the manifest in it, and the files.
    static func arguments(
        _ step: CheckStep, seconds: Int, seed: UInt64, trustsEveryone: Bool, folder: String, files: [String]
    ) -> [String] {
        [word, step.rawValue, "\(seconds)", "\(seed)", trustsEveryone ? "trust" : "check", folder] + files
    }

    static func run(_ arguments: [String]) async -> Never {
        guard arguments.count >= 6, let step = CheckStep(rawValue: arguments[0]), let seconds = UInt32(arguments[1]),
            let seed = UInt64(arguments[2]),
            let text = try? String(contentsOfFile: "\(arguments[4])/\(manifestName)", encoding: .utf8),
            let manifest = try? Value(json: text)
        else { _exit(ExitCode.usage.rawValue) }
        // Should the parent hang, too, nobody else ends a module that does.
        alarm(seconds + 1)
        _ = fcntl(ChildProcess.reportDescriptor, F_SETFD, FD_CLOEXEC)
        endWithParent(removing: arguments[4])
        PluginHost.installFatalSignalReport()
        let module = CheckedModule(
            manifest: CheckedManifest(manifest), files: Array(arguments[5...]), trustsEveryone: arguments[3] == "trust",
            folder: arguments[4], callTimeout: step.callTimeout(of: .seconds(Int(seconds))))
        let output = CheckedOutput(folder: arguments[4])
        var result = await withTaskExecutorPreference(BlockingExecutor.shared) { await perform(step, module, seed) }
        // Once is enough to say.
        if step == .lifecycle || step == .replies { output.examine(&result) }
        tell(result.record)
        plugin_host_end(0)
    }

    private static func tell(_ value: Value) { InspectionChild.write(value.json + "\n") }

    /// When the parent is gone, whatever has ended it, this process and all that the module has started go, too, and
    /// the folder with them.
    private static func endWithParent(removing folder: String) {
        // Without a thread the parent's deadline ends this process, as long as there is a parent.
        try? DetachedThread.start("pluginhost.parent") {
            var parent = pollfd(fd: ChildProcess.reportDescriptor, events: 0, revents: 0)
            while poll(&parent, 1, -1) < 0, errno == EINTR {}
            guard parent.revents & Int16(POLLHUP) != 0 else { return }
            // Again while the host, which runs on, makes something in it.
            for _ in 0..<100 where access(folder, F_OK) == 0 { try? FileManager.default.removeItem(atPath: folder) }
            kill(0, SIGKILL)
        }
    }

    private static func perform(_ step: CheckStep, _ module: CheckedModule, _ seed: UInt64) async -> CheckResult {
        var result = CheckResult(check: step.rawValue, summary: step.summary)
        if step == .lifecycle {
            LifecycleCheck(module: module, started: { tell(["started": true]) }).run(&result)
            return result
        }
        let log = CheckedModule.Log()
        do throws(PluginError) {
            let host = try module.start(log: log)
            let check = ActionCheck(
                module: module, seed: seed, host: host, timeout: module.callTimeout,
                progress: { tell(["at": .string($0)]) })
            switch step {
            case .lifecycle: break
            case .unknown: await check.unknown(&result)
            case .parameters: await check.parameters(&result)
            case .hostile: await check.hostile(&result)
            case .concurrent: await check.concurrent(&result)
            case .replies: await check.replies(&result, log: log)
            case .objects: await check.objects(&result)
            }
        } catch {
            result.fail(error.message)
        }
        return result
    }
}
