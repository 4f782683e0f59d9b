import CPluginHost
import Foundation
import Glibc
import PluginABI
import PluginFile
import Synchronization

/// Remembers what killed the host: writes down which modules are being started, and forgets each when its start is over.
///
/// What a journal still says when its host is gone becomes a quarantine at the next start:
///
/// - for good, when code of a module ended the process, by a fatal signal or by `exit` or `_exit`: the dying process
///   writes down whose code it was, and nobody else is blamed;
/// - for good, when the host was gone twice in the same step with the same bytes;
/// - else on suspicion, for every module of which code was running, since whoever kills a host (an operator, the kernel
///   for want of memory) may do so at any moment. A host that goes on running tries what is suspected once more, when
///   everything else serves.
///
/// Without a state folder that can be written the journal does nothing, and ``problem`` says why. All functions may be
/// called from any thread.
final class Journal: Sendable {
    /// What of a start runs code of a module.
    enum Step: String, Sendable {
        /// `dlopen`: initializers run.
        case opening
        /// The entry function, and what reads the description that it returns.
        case entry
        /// `activate`, `setUp`, `resume` and `init`; `tearDown` and `deactivate` of a start that is given up.
        case activation
        /// `didStart`, and the sticky events that a module finds.
        case start
    }

    /// A module that is being started.
    private struct Start {
        /// Its first line, and the step that begins with it.
        let line: String
        let first: Step
        /// Which of its steps run now.
        var running: [Step]
        /// Whether it has nothing more to do but to end the steps that run.
        var isOver = false
    }

    private struct State {
        /// By the numbers of the files.
        var starts: [UInt64: Start] = [:]
        var quarantine: [QuarantineEntry] = []
        var problem: PluginError?
        /// Held by flock until the process ends; -1 without a journal.
        var descriptor: Int32 = -1
        var path = ""
    }

    private let quarantine: Quarantine
    private let state: Mutex<State>

    /// Starts a journal, and takes over what hosts that died have left.
    ///
    /// - Parameters:
    ///   - stateFolder: Made where it is missing; nil for the default, `$XDG_STATE_HOME/pluginhost` or
    ///     `$HOME/.local/state/pluginhost`.
    ///   - checksTrust: Whether to leave out what others than this user and root could have written.
    init(stateFolder: String? = nil, checksTrust: Bool = true) {
        let folder = stateFolder ?? Self.defaultFolder
        quarantine = Quarantine(folder: folder ?? "", checksTrust: checksTrust)
        var state = State()
        do throws(PluginError) {
            guard let folder else {
                throw PluginError(.unreadable, "neither XDG_STATE_HOME nor HOME is an absolute path. Set one of them.")
            }
            try quarantine.checkTrust(of: folder)
            try quarantine.checkTrust(of: "\(folder)/journal")
            try Self.open(in: folder, &state)
            let dead = try Self.readDead(in: "\(folder)/journal", checksTrust)
            defer { for descriptor in dead.descriptors { Glibc.close(descriptor) } }
            state.quarantine = try quarantine.update { entries in
                for var entry in dead.entries {
                    // Twice is no accident.
                    if entries.contains(where: entry.isAbout) { entry.isSuspected = nil }
                    entries.removeAll(where: entry.hasContent(of:))
                    entries.append(entry)
                }
                entries.removeFirst(max(0, entries.count - Quarantine.entriesMax))
            }
            for path in dead.paths { unlink(path) }
        } catch {
            state.quarantine = quarantine.read()
            state.problem = Self.loss(error)
        }
        self.state = Mutex(state)
    }

    deinit { close() }

    private static func loss(_ error: PluginError) -> PluginError {
        PluginError(
            error.code,
            "Crashes of modules will not be remembered, and what kills the host kills its next start, too: "
                + "\(error.message) Repair that, or name a folder that can be written (stateFolder, "
                + "XDG_STATE_HOME), and start the host again.")
    }

    /// Why nothing, or not everything, is remembered; nil if all is well.
    var problem: PluginError? { state.withLock { $0.problem } }

    /// The files that are quarantined now.
    var quarantinedFiles: [QuarantineEntry] { state.withLock { $0.quarantine } }

    /// Does something with a file, which is to blame if the process dies meanwhile. The start of the file goes on after it,
    /// until ``endStarts()``. Steps can be nested, and run on several threads.
    func during<Result, Failure: Error>(
        step: Step, file: String, digest: UInt64, size: Int, number: UInt64 = StagedFile.nextNumber(),
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        begin(step, file: file, digest: digest, size: size, number: number)
        defer { end(step, number) }
        return try body()
    }

    /// Whether a file is being started.
    func isStarting(_ number: UInt64) -> Bool { state.withLock { $0.starts[number] != nil } }

    /// Writes down that a step begins; ``end(_:_:)`` is to follow.
    func begin(_ step: Step, file: String, digest: UInt64, size: Int, number: UInt64) {
        state.withLock { state in
            if state.starts[number] != nil {
                state.starts[number]!.running.append(step)
                return Self.write(JournalLine.begin(step, number), &state)
            }
            let line = JournalLine.begin(step, file: Self.absolute(file), digest: digest, size: size, number: number)
            state.starts[number] = Start(line: line, first: step, running: [step])
            plugin_host_count_starts(1)
            Self.write(line, &state)
        }
    }

    /// Writes down that a step is over.
    func end(_ step: Step, _ number: UInt64) {
        state.withLock { state in
            guard var start = state.starts[number] else { return }
            if let place = start.running.lastIndex(of: step) { start.running.remove(at: place) }
            state.starts[number] = start
            if start.isOver, start.running.isEmpty { return Self.forget(number, &state) }
            Self.write(JournalLine.end(step, number), &state)
        }
    }

    /// Forgets the modules of which no step runs: they are started, or are not going to be. The others are forgotten when
    /// their steps have ended.
    func endStarts() {
        state.withLock { state in
            for number in state.starts.keys {
                if state.starts[number]!.running.isEmpty {
                    state.starts[number] = nil
                    plugin_host_count_starts(-1)
                } else {
                    state.starts[number]!.isOver = true
                }
            }
            Self.clear(&state)
            // What is left are steps that do not end.
            for (number, start) in state.starts {
                let running = start.running.map { JournalLine.begin($0, number) }.joined()
                Self.write(start.line + running + JournalLine.end(start.first, number), &state)
            }
        }
    }

    /// Forgets everything, and writes nothing more: the host ends in order. Modules, which are never freed, keep the
    /// journal alive.
    func close() {
        state.withLock { state in
            plugin_host_count_starts(-Int32(state.starts.count))
            state.starts = [:]
            guard state.descriptor >= 0 else { return }
            unlink(state.path)
            plugin_host_remove_journal(state.descriptor)
            Glibc.close(state.descriptor)
            state.descriptor = -1
        }
    }

    private static func forget(_ number: UInt64, _ state: inout State) {
        state.starts[number] = nil
        plugin_host_count_starts(-1)
        if state.starts.isEmpty { clear(&state) } else { write(JournalLine.end(number), &state) }
    }

    /// The quarantine of a content that lies at a path, or is to come to lie there. Another content of the same file has an
    /// entry of its own, or none.
    func quarantined(path: String, digest: UInt64) -> QuarantineEntry? {
        let file = Self.absolute(path)
        return quarantinedFiles.first { $0.file.hasBytes(of: file) && $0.digest == digest }
    }

    /// The same for each way to name a file, so that its quarantine holds from every working directory.
    private static func absolute(_ path: String) -> String {
        guard let resolved = realpath(path, nil) else {
            // There is no such file at the moment: its folder has one name all the same.
            guard errno == ENOENT, let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")), slash > path.startIndex,
                let folder = realpath(String(path[..<slash]), nil)
            else { return path }
            defer { free(folder) }
            return String(cString: folder) + path[slash...]
        }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// Ends the suspicion against the file at a path: it was tried, and has not killed the host.
    func clearSuspicion(_ path: String) {
        let file = Self.absolute(path)
        release { $0.isSuspected == true && $0.file.hasBytes(of: file) }
    }

    /// Ends every quarantine.
    func release() { release { _ in true } }

    private func release(_ isReleased: (QuarantineEntry) -> Bool) {
        state.withLock { state in
            do throws(PluginError) {
                state.quarantine = try quarantine.update { $0.removeAll(where: isReleased) }
            } catch {
                state.quarantine.removeAll(where: isReleased)
                state.problem = state.problem ?? error
            }
        }
    }

    /// Adds a line. What has reached the kernel survives the process.
    private static func write(_ line: String, _ state: inout State) {
        guard state.descriptor >= 0 else { return }
        var line = line
        let count = line.utf8.count
        let written = line.withUTF8 { Glibc.write(state.descriptor, $0.baseAddress, count) }
        if written != count { fail(written < 0 ? errno : ENOSPC, &state) }
    }

    private static func clear(_ state: inout State) {
        guard state.descriptor >= 0, ftruncate(state.descriptor, 0) != 0 else { return }
        fail(errno, &state)
    }

    private static func fail(_ code: Int32, _ state: inout State) {
        guard state.problem == nil else { return }
        state.problem = loss(PluginError(.unreadable, "\(state.path) cannot be written: \(describe(errno: code))."))
    }

    /// `$XDG_STATE_HOME/pluginhost` or `$HOME/.local/state/pluginhost`; nil where neither variable is set.
    static var defaultFolder: String? {
        let environment = ProcessInfo.processInfo.environment
        if let state = environment["XDG_STATE_HOME"], state.hasPrefix("/") { return "\(state)/pluginhost" }
        guard let home = environment["HOME"], home.hasPrefix("/") else { return nil }
        return "\(home)/.local/state/pluginhost"
    }

    private static func open(in folder: String, _ state: inout State) throws(PluginError) {
        do throws(POSIXError) { try VersionStore.makeFolder("\(folder)/journal") } catch {
            throw PluginError(
                .unreadable, "the folder \(folder)/journal cannot be used: \(describe(errno: error.code.rawValue)).")
        }
        // Locked before it gets its name, so that no other host takes it for one of a dead host.
        let path = "\(folder)/journal/\(getpid())-\(UInt32.random(in: 0 ... .max))"
        let descriptor = Glibc.open("\(path).new", O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0, flock(descriptor, LOCK_EX | LOCK_NB) == 0, rename("\(path).new", "\(path).jsonl") == 0
        else {
            let code = errno
            if descriptor >= 0 { Glibc.close(descriptor) }
            throw PluginError(.unreadable, "\(path).jsonl cannot be made: \(describe(errno: code)).")
        }
        guard plugin_host_add_journal(descriptor) != 0 else {
            Glibc.close(descriptor)
            unlink("\(path).jsonl")
            throw PluginError(.unreadable, "there is no memory left for a journal.")
        }
        state.descriptor = descriptor
        state.path = "\(path).jsonl"
        try requireRoom(state)
    }

    /// A folder that is full is a loss that is told at once, not when the first module comes.
    private static func requireRoom(_ state: State) throws(PluginError) {
        let page = [UInt8](repeating: UInt8(ascii: "\n"), count: 4096)
        let written = Glibc.write(state.descriptor, page, page.count)
        let code = written < 0 ? errno : ENOSPC
        guard ftruncate(state.descriptor, 0) == 0, written == page.count else {
            throw PluginError(.unreadable, "\(state.path) cannot be written: \(describe(errno: code)).")
        }
    }

    /// The journals of hosts that died, locked, and what they say.
    private static func readDead(
        in folder: String, _ checksTrust: Bool
    ) throws(PluginError) -> (entries: [QuarantineEntry], paths: [String], descriptors: [Int32]) {
        var dead: (entries: [QuarantineEntry], paths: [String], descriptors: [Int32]) = ([], [], [])
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        for name in names.sorted() where name.hasSuffix(".jsonl") {
            let path = "\(folder)/\(name)"
            let descriptor = Glibc.open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
            guard descriptor >= 0 else { continue }
            let isTrusted = !checksTrust || (try? Trust.check(fileDescriptor: descriptor, path: path)) != nil
            guard isTrusted, flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
                Glibc.close(descriptor)
                continue
            }
            dead.descriptors.append(descriptor)
            dead.paths.append(path)
            dead.entries += DeadJournal(descriptor).blamed
        }
        return dead
    }
}
