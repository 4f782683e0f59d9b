import CPluginHost
import FoundationEssentials
import Glibc
import PluginABI
import PluginFile
import Synchronization

/// The journal: a record of the modules that are being started, to find out which one killed the host. A module is
/// removed from it when its start is over.
///
/// If the host dies, the modules in its journal are quarantined at the next start:
///
/// - permanently, if code of a module ended the process by a fatal signal or by `exit` or `_exit`: the dying process
///   records which module's code it was, and no other module is blamed;
/// - permanently, if the host died twice while the same step of a file with the same content was running;
/// - otherwise as suspects: every module whose code was running, since a host can also be killed from outside at any
///   time (by an operator, or by the kernel when memory runs out). A host that keeps running tries suspects once more,
///   after all other modules serve.
///
/// Without a writable state folder the journal does nothing, and ``problem`` gives the reason. All functions may be
/// called from any thread.
final class Journal: Sendable {
    /// A step of a module's start that runs code of the module.
    enum Step: String, Sendable {
        /// `dlopen`, which runs initialisers.
        case opening
        /// Calling the entry function.
        case entry
        /// `activate`, `setUp`, `resume` and `init`; `tearDown` and `deactivate` if the start fails.
        case activation
        /// `didStart`, and the delivery of existing sticky events.
        case start
    }

    /// A module that is being started.
    private struct Start {
        /// The module's first line, and the step that begins with it.
        let line: String
        let first: Step
        /// The steps that are running.
        var running: [Step]
        /// Whether no more steps follow those that are running.
        var isOver = false
        /// The path of the file, if it is no longer a suspect when the start is over.
        var cleared: String?
        let file: String
    }

    private struct State {
        /// The modules that are being started, by the numbers of their files.
        var starts: [UInt64: Start] = [:]
        var quarantine: [QuarantineEntry] = []
        var problem: PluginError?
        /// The journal file, locked with `flock` until the process ends; -1 if there is none.
        var descriptor: Int32 = -1
        var path = ""
        var isClosed = false
    }

    private let quarantine: Quarantine
    private let state: Mutex<State>

    /// Starts a journal, and quarantines the modules in journals of hosts that died.
    ///
    /// - Parameters:
    ///   - stateFolder: The state folder, which is created if it is missing; `nil` for the default,
    ///     `$XDG_STATE_HOME/pluginhost` or `$HOME/.local/state/pluginhost`.
    ///   - checksTrust: Whether to ignore files that users other than this user and root can write.
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
                    // A second death in the same step is not a coincidence.
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
            "Crashes of modules will not be remembered, and a module that kills the host will kill it again at its "
                + "next start: \(error.message) Fix this, or name a writable folder (stateFolder, XDG_STATE_HOME), and "
                + "restart the host.")
    }

    /// The reason why the journal records nothing, or not everything; `nil` if it works.
    var problem: PluginError? { state.withLock { $0.problem } }

    /// The files that are quarantined now.
    var quarantinedFiles: [QuarantineEntry] { state.withLock { $0.quarantine } }

    /// Returns whether the module of a file is being started.
    func isStarting(_ number: UInt64) -> Bool { state.withLock { $0.starts[number] != nil } }

    /// Records that a step of the start of a file begins. The file is blamed if the process dies during the step. The
    /// start continues after the step, until ``endStarts()``. Steps can be nested, and can run on several threads.
    /// ``end(_:_:)`` must follow. Does nothing after ``close()``.
    func begin(_ step: Step, file: String, digest: UInt64, size: Int, number: UInt64) {
        state.withLock { state in
            guard !state.isClosed else { return }
            if state.starts[number] != nil {
                state.starts[number]!.running.append(step)
                return Self.write(JournalLine.begin(step, number), &state)
            }
            let line = JournalLine.begin(step, file: Self.absolute(file), digest: digest, size: size, number: number)
            state.starts[number] = Start(line: line, first: step, running: [step], file: Self.absolute(file))
            plugin_host_begin_start(number)
            Self.write(line, &state)
        }
    }

    /// Records that a step has ended.
    func end(_ step: Step, _ number: UInt64) {
        state.withLock { state in
            guard var start = state.starts[number] else { return }
            if let index = start.running.lastIndex(of: step) { start.running.remove(at: index) }
            state.starts[number] = start
            if start.isOver, start.running.isEmpty { return forget(number, &state) }
            Self.write(JournalLine.end(step, number), &state)
        }
    }

    /// Removes the modules that have no running step: their start is over, whether it succeeded or failed. Other
    /// modules are removed when their steps have ended.
    func endStarts() {
        state.withLock { state in
            for (number, start) in state.starts {
                if start.running.isEmpty {
                    state.starts[number] = nil
                    plugin_host_end_start(number)
                    if let file = start.cleared { clearSuspicion(file, &state) }
                } else {
                    state.starts[number]!.isOver = true
                }
            }
            Self.clear(&state)
            // The remaining steps are still running; the journal is written again with them.
            for (number, start) in state.starts {
                let running = start.running.map { JournalLine.begin($0, number) }.joined()
                Self.write(start.line + running + JournalLine.end(start.first, number), &state)
            }
        }
    }

    /// Removes the journal file and stops recording, since the host shuts down in an orderly manner. The object itself
    /// stays alive, since modules are never freed and refer to it.
    func close() {
        state.withLock { state in
            for number in state.starts.keys { plugin_host_end_start(number) }
            state.starts = [:]
            state.isClosed = true
            guard state.descriptor >= 0 else { return }
            unlink(state.path)
            plugin_host_remove_journal(state.descriptor)
            Glibc.close(state.descriptor)
            state.descriptor = -1
        }
    }

    private func forget(_ number: UInt64, _ state: inout State) {
        let start = state.starts.removeValue(forKey: number)
        plugin_host_end_start(number)
        if state.starts.isEmpty { Self.clear(&state) } else { Self.write(JournalLine.end(number), &state) }
        if let file = start?.cleared { clearSuspicion(file, &state) }
    }

    /// Returns the quarantine entry of content that is at a path, or will be moved there. Each content of a file has
    /// its own entry, if any.
    func quarantined(path: String, digest: UInt64) -> QuarantineEntry? {
        let all = quarantinedFiles
        if all.isEmpty { return nil }
        let entries = all.filter { $0.digest == digest }
        guard !entries.isEmpty else { return nil }
        let file = Self.absolute(path)
        return entries.first { $0.file.hasBytes(of: file) }
    }

    /// Returns the absolute path of a file without links, so that its quarantine does not depend on how the file is
    /// named or on the working directory.
    private static func absolute(_ path: String) -> String {
        guard let resolved = realpath(path, nil) else {
            // The file does not exist at the moment, but its folder can be resolved.
            guard errno == ENOENT, let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")), slash > path.startIndex,
                let folder = realpath(String(path[..<slash]), nil)
            else { return path }
            defer { free(folder) }
            return String(cString: folder) + path[slash...]
        }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// Removes a suspected file from the quarantine, since it was tried and has not killed the host. If code of its
    /// start is still running, it is removed when that has ended.
    func clearSuspicion(_ path: String) {
        let file = Self.absolute(path)
        state.withLock { clearSuspicion(file, &$0) }
    }

    private func clearSuspicion(_ file: String, _ state: inout State) {
        let running = state.starts.filter { !$0.value.running.isEmpty && $0.value.file.hasBytes(of: file) }
        for number in running.keys { state.starts[number]!.cleared = file }
        guard running.isEmpty else { return }
        release(&state) { $0.isSuspected == true && $0.file.hasBytes(of: file) }
    }

    /// Removes all files from the quarantine.
    func release() { state.withLock { release(&$0) { _ in true } } }

    private func release(_ state: inout State, _ isReleased: (QuarantineEntry) -> Bool) {
        do throws(PluginError) {
            state.quarantine = try quarantine.update { $0.removeAll(where: isReleased) }
        } catch {
            state.quarantine.removeAll(where: isReleased)
            state.problem = state.problem ?? error
        }
    }

    /// Appends a line. Once the kernel has it, it survives the process.
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

    /// `$XDG_STATE_HOME/pluginhost` or `$HOME/.local/state/pluginhost`; `nil` if neither variable is an absolute path.
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
        // The file is locked before it gets its final name, so that no other host considers its host dead.
        let path = "\(folder)/journal/\(getpid())-\(UInt32.random(in: 0 ... .max))"
        let descriptor = Glibc.open("\(path).new", O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0, flock(descriptor, LOCK_EX | LOCK_NB) == 0, rename("\(path).new", "\(path).jsonl") == 0
        else {
            let code = errno
            if descriptor >= 0 { Glibc.close(descriptor) }
            throw PluginError(.unreadable, "\(path).jsonl cannot be created: \(describe(errno: code)).")
        }
        guard plugin_host_add_journal(descriptor) != 0 else {
            Glibc.close(descriptor)
            unlink("\(path).jsonl")
            throw PluginError(.unreadable, "there is not enough memory for a journal.")
        }
        state.descriptor = descriptor
        state.path = "\(path).jsonl"
        try requireRoom(state)
    }

    /// Checks that the journal can be written, so that a full disk is reported at the start of the host, not when the
    /// first module is started.
    private static func requireRoom(_ state: State) throws(PluginError) {
        let page = [UInt8](repeating: UInt8(ascii: "\n"), count: 4096)
        let written = Glibc.write(state.descriptor, page, page.count)
        let code = written < 0 ? errno : ENOSPC
        guard ftruncate(state.descriptor, 0) == 0, written == page.count else {
            throw PluginError(.unreadable, "\(state.path) cannot be written: \(describe(errno: code)).")
        }
    }

    /// Locks and reads the journals of hosts that died.
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
