internal import FoundationEssentials
internal import Glibc
internal import PluginABI
internal import PluginFile
internal import PluginHost
internal import Synchronization

/// Replaces a module with a copy of itself: first while nothing calls it, to see what becomes of its state; then while
/// several threads call it.
struct ReplacementCheck: Sendable {
    private static let threads = 4

    let module: CheckedModule
    let host: PluginHost
    let calls: [CheckedCall]
    let parameters: [Parameters]
    let progress: @Sendable (String) -> Void

    func run(_ result: inout CheckResult) async {
        result.summary = "replaced by a copy of itself, also while \(Self.threads) threads called it"
        guard await compareStates(&result) else { return }
        await replaceUnderCalls(&result)
    }

    // MARK: State

    /// Calls all actions in two orders after replacements: if a reply shows state, another action may already have set
    /// that state in one of the orders.
    private func compareStates(_ result: inout CheckResult) async -> Bool {
        let forward = Array(calls.indices)
        let backward = Array(forward.reversed())
        let fresh = await replies(forward)
        // The state becomes stable. Replies that still change show something else.
        let settled = [await replies(forward), await replies(forward), await replies(backward)]
        guard await replace(&result) else { return false }
        let first = await replies(forward)
        _ = await replies(forward)
        guard await replace(&result) else { return false }
        let second = await replies(backward)
        _ = await replies(forward)
        guard await replace(&result) else { return false }
        let third = await replies(backward)
        for index in forward {
            guard let before = settled[0][index], !before.containsObject,
                settled.allSatisfy({ $0[index] == before })
            else { continue }
            // A reply that differs from generation to generation is not state.
            if let after = first[index], after != before, after == fresh[index] {
                tell(index, before, after, &result)
            } else if let after = second[index], after != before, after == third[index] {
                tell(index, before, after, &result)
            }
        }
        return true
    }

    private func replies(_ indices: [Int]) async -> [Value?] {
        var replies = [Value?](repeating: nil, count: calls.count)
        for index in indices {
            progress("\(calls[index].title), before and after a replacement")
            replies[index] = try? await calls[index].perform(
                parameters[index], in: host, timeout: module.callTimeout
            ).get()
        }
        return replies
    }

    private func tell(_ index: Int, _ before: Value, _ after: Value, _ result: inout CheckResult) {
        let message =
            "\(calls[index].title) replies \(before.json.shortened) before a replacement and "
            + "\(after.json.shortened) after it"
        if ["suspend", "resume"].allSatisfy(module.manifest.hooks.contains) {
            result.fail(
                message + ", although the module hands its state over.",
                advice: "Let 'suspend' reply with all state, and 'resume' take it.")
        } else {
            result.notes.append(message + ": the module hands no state over; 'suspend' and 'resume' would do that.")
        }
    }

    // MARK: Replacement

    /// Replaces the module's file with a copy with other bytes, and waits until the copy serves.
    private func replace(_ result: inout CheckResult) async -> Bool {
        let serving = host.generations.first { $0.name == module.manifest.name && $0.state == .active }?.number
        progress("the replacement")
        do {
            let file = module.check.files[0]
            var bytes = try Data(contentsOf: URL(filePath: file))
            bytes.append(0)
            try bytes.write(to: URL(filePath: file + ".new"))
            rename(file + ".new", file)
        } catch {
            result.fail("The copy of the module cannot be written: \(CocoaError.text(error))")
            return false
        }
        let end = ContinuousClock.now + .seconds(Int(module.check.seconds)) / 4
        while ContinuousClock.now < end {
            module.endIfCrashed(host)
            let now = host.generations.first { $0.name == module.manifest.name && $0.state == .active }?.number
            if let now, now != serving { return true }
            if let error = host.modules.first(where: { $0.file == module.check.files[0] })?.error {
                result.fail(
                    "It is not replaced by a copy of itself: \(error.message)", advice: CheckStep.replacement.advice)
                return false
            }
            try? await Task.sleep(for: .milliseconds(5))
        }
        result.fail("It is not replaced by a copy of itself in time.", advice: CheckStep.replacement.advice)
        return false
    }

    /// The shared state of the calling threads.
    private final class Calling: Sendable {
        let isOver = Atomic(false)
        /// The errors of the host, by action.
        let failures = Mutex<[String: PluginError]>([:])
    }

    private func replaceUnderCalls(_ result: inout CheckResult) async {
        let calling = Calling()
        let known = await outcomes()
        await withTaskGroup(of: Void.self) { group in
            for thread in 0..<Self.threads {
                group.addTask {
                    var number = thread
                    while !calling.isOver.load(ordering: .relaxed) {
                        let index = number % calls.count
                        number += 1
                        let outcome = await calls[index].perform(
                            parameters[index], in: host, timeout: module.callTimeout)
                        guard case .failure(let error) = outcome, error.source == nil, error.code != known[index],
                            ![.deadlineExceeded, .overloaded, .outOfResources].contains(error.code)
                        else { continue }
                        calling.failures.withLock { $0[calls[index].title] = error }
                    }
                }
            }
            try? await Task.sleep(for: .milliseconds(20))
            _ = await replace(&result)
            try? await Task.sleep(for: .milliseconds(20))
            calling.isOver.store(true, ordering: .relaxed)
        }
        for (title, error) in calling.failures.withLock({ $0 }).sorted(by: { $0.key < $1.key }) {
            result.fail(
                "\(title) fails while the module is replaced: \(error.message)", advice: CheckStep.replacement.advice)
        }
    }

    /// The errors of the host that actions end with in any case.
    private func outcomes() async -> [PluginError.Code?] {
        var codes: [PluginError.Code?] = []
        for index in calls.indices {
            let outcome = await calls[index].perform(parameters[index], in: host, timeout: module.callTimeout)
            if case .failure(let error) = outcome { codes.append(error.code) } else { codes.append(nil) }
        }
        return codes
    }
}

extension CheckChild {
    /// Returns the name of the copy of a file, by its number in the check and its name.
    static func nameOfCopy(_ number: Int, _ name: String) -> String { "\(number)-\(name)" }

    /// The check with copies of the files, in a folder where they can be replaced.
    func withCopies(in folder: String) throws(PluginError) -> CheckChild {
        let place = ModuleCheck.absolute(folder + "/plugins")
        mkdir(place, 0o700)
        var copies: [String] = []
        do {
            for (number, file) in files.enumerated() {
                // Libraries that the module finds beside itself.
                let home = file.parentFolder
                for name in try FileManager.default.contentsOfDirectory(atPath: home).prefix(10_000)
                where name.contains(".so") && !files.contains("\(home)/\(name)") {
                    symlink("\(home)/\(name)", "\(place)/\(name)")
                }
                copies.append("\(place)/" + Self.nameOfCopy(number, file.fileName))
                try FileManager.default.copyItem(atPath: file, toPath: copies[number])
            }
        } catch {
            throw PluginError(.checkFailed, "The module cannot be copied: \(CocoaError.text(error))")
        }
        return CheckChild(
            step: step, seconds: seconds, seed: seed, trustsEveryone: trustsEveryone, isolates: isolates,
            configuration: try configuration.forCopies(of: files, in: place), files: copies, manifest: manifest)
    }
}

extension Value {
    fileprivate var containsObject: Bool {
        switch self {
        case .object: true
        case .list(let values): values.contains(where: \.containsObject)
        case .map(let values): values.values.contains(where: \.containsObject)
        default: false
        }
    }
}
