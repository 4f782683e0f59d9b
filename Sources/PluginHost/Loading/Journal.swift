internal import CPluginHost
internal import Foundation
internal import Glibc
internal import PluginABI
internal import Synchronization

/// Remembers what killed the host: writes down what it is about to do with a file, and forgets it when that is done.
///
/// What a journal still says when its host is gone becomes a quarantine at the next start: for good when a signal of the
/// file's own has killed the host, or when the host was gone twice in the same step with the same bytes; else on
/// suspicion, since whoever kills a host (an operator, the kernel for want of memory) may do so at any moment. A host that
/// goes on running tries what is suspected once more, when everything else serves. Without a state folder that
/// can be written the journal does nothing, and ``problem`` says why. All functions may be called from any thread.
final class Journal: Sendable {
    /// What runs code of a module for the first time.
    enum Step: String, Codable, Sendable {
        /// `dlopen`: initializers run.
        case opening
        /// The entry function.
        case entry
        /// `activate` and the hooks that follow.
        case activation
    }

    private struct Line {
        let number: Int
        let text: [UInt8]
    }

    private struct State {
        var lines: [Line] = []
        var lastNumber = 0
        var quarantine: [QuarantineEntry] = []
        var problem: PluginError?
        /// Held by flock until the process ends; -1 without a journal.
        var descriptor: Int32 = -1
        var path = ""
        /// Of what the file holds, in bytes.
        var writtenLength = 0

        /// Of all lines, in bytes.
        var length: Int { lines.reduce(0) { $0 + $1.text.count } }
    }

    private let quarantine: Quarantine
    private let state: Mutex<State>

    /// Starts a journal, and takes over what hosts that died have left.
    ///
    /// - Parameter stateFolder: Made where it is missing; nil for the default, `$XDG_STATE_HOME/pluginhost` or
    ///   `$HOME/.local/state/pluginhost`.
    init(stateFolder: String? = nil) {
        let folder = stateFolder ?? Self.defaultFolder
        quarantine = Quarantine(folder: folder ?? "")
        var state = State()
        do throws(PluginError) {
            guard let folder else {
                throw PluginError(.unreadable, "neither XDG_STATE_HOME nor HOME is set. Set one of them.")
            }
            try Self.open(in: folder, &state)
            let dead = try Self.readDead(in: "\(folder)/journal")
            defer { for descriptor in dead.descriptors { close(descriptor) } }
            state.quarantine = try quarantine.update { entries in
                for var entry in dead.entries {
                    // Twice is no accident.
                    if entries.contains(where: entry.isAbout) { entry.isSuspected = nil }
                    entries.removeAll { $0.file == entry.file }
                    entries.append(entry)
                }
            }
            for path in dead.paths { unlink(path) }
        } catch {
            state.quarantine = quarantine.read()
            state.problem = PluginError(
                error.code, "What kills the host cannot be remembered: \(error.message)")
        }
        self.state = Mutex(state)
    }

    deinit {
        state.withLock { state in
            guard state.descriptor >= 0 else { return }
            unlink(state.path)
            plugin_host_remove_journal(state.descriptor)
            close(state.descriptor)
        }
    }

    /// Why nothing, or not everything, is remembered; nil if all is well.
    var problem: PluginError? { state.withLock { $0.problem } }

    /// The files that are quarantined now.
    var quarantinedFiles: [QuarantineEntry] { state.withLock { $0.quarantine } }

    /// Does something with a file, which is to blame if the process dies meanwhile. Steps can be nested.
    func during<Result, Failure: Error>(
        step: Step, file: String, digest: UInt64, size: Int, _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let number = begin(
            QuarantineEntry(
                file: Self.absolute(file), digest: digest, step: step, date: Date(),
                message: "The host died during the \(step.rawValue) of \(file) (\(size) bytes)."))
        defer { end(number) }
        return try body()
    }

    /// The quarantine of a file, if it is in one. A file that has changed since leaves it.
    func quarantined(path: String, digest: UInt64) -> QuarantineEntry? {
        let file = Self.absolute(path)
        guard let entry = quarantinedFiles.first(where: { $0.file == file }) else { return nil }
        if entry.digest == digest { return entry }
        release(file)
        return nil
    }

    /// The same for each way to name a file, so that its quarantine holds from every working directory.
    private static func absolute(_ path: String) -> String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// Ends the quarantine of the file at a path.
    func releaseFile(_ path: String) { release(Self.absolute(path)) }

    /// Ends the quarantine of one file, or of all.
    func release(_ path: String? = nil) {
        state.withLock { state in
            do throws(PluginError) {
                state.quarantine = try quarantine.update { entries in
                    entries.removeAll { path == nil || $0.file == path }
                }
            } catch {
                state.quarantine.removeAll { path == nil || $0.file == path }
                state.problem = state.problem ?? error
            }
        }
    }

    private func begin(_ entry: QuarantineEntry) -> Int {
        let text = Array("\(entry.line)\n".utf8)
        return state.withLock { state in
            state.lastNumber += 1
            let length = state.length
            state.lines.append(Line(number: state.lastNumber, text: text))
            Self.write(text, at: length, &state)
            return state.lastNumber
        }
    }

    private func end(_ number: Int) {
        state.withLock { state in
            let isLast = state.lines.last?.number == number
            state.lines.removeAll { $0.number == number }
            if isLast {
                Self.write([], at: state.length, &state)
            } else {
                Self.write(state.lines.flatMap(\.text), at: 0, &state)
            }
        }
    }

    /// Replaces everything from an offset on. What has reached the kernel survives the process.
    private static func write(_ text: [UInt8], at offset: Int, _ state: inout State) {
        guard state.descriptor >= 0 else { return }
        let written = text.isEmpty ? 0 : pwrite(state.descriptor, text, text.count, off_t(offset))
        let isLonger = offset + text.count < state.writtenLength
        state.writtenLength = offset + text.count
        guard written == text.count,
            !isLonger || ftruncate(state.descriptor, off_t(state.writtenLength)) == 0
        else {
            let reason = describe(errno: errno)
            state.problem = state.problem ?? PluginError(.unreadable, "\(state.path) cannot be written: \(reason).")
            return
        }
    }

    /// `$XDG_STATE_HOME/pluginhost` or `$HOME/.local/state/pluginhost`; nil where neither variable is set.
    static var defaultFolder: String? {
        let environment = ProcessInfo.processInfo.environment
        if let state = environment["XDG_STATE_HOME"], state.hasPrefix("/") { return "\(state)/pluginhost" }
        guard let home = environment["HOME"], home.hasPrefix("/") else { return nil }
        return "\(home)/.local/state/pluginhost"
    }

    private static func open(in folder: String, _ state: inout State) throws(PluginError) {
        do {
            try FileManager.default.createDirectory(
                atPath: "\(folder)/journal", withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
        } catch {
            throw PluginError(.unreadable, "the folder \(folder)/journal cannot be made: \(error.localizedDescription)")
        }
        // Locked before it gets its name, so that no other host takes it for one of a dead host.
        let path = "\(folder)/journal/\(getpid())-\(UInt32.random(in: 0 ... .max))"
        let descriptor = Glibc.open("\(path).new", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0, flock(descriptor, LOCK_EX | LOCK_NB) == 0, rename("\(path).new", "\(path).jsonl") == 0
        else {
            let code = errno
            if descriptor >= 0 { close(descriptor) }
            throw PluginError(.unreadable, "\(path).jsonl cannot be made: \(describe(errno: code)).")
        }
        plugin_host_add_journal(descriptor)
        state.descriptor = descriptor
        state.path = "\(path).jsonl"
    }

    /// The journals of hosts that died, locked, and what they say.
    private static func readDead(
        in folder: String
    ) throws(PluginError) -> (entries: [QuarantineEntry], paths: [String], descriptors: [Int32]) {
        var dead: (entries: [QuarantineEntry], paths: [String], descriptors: [Int32]) = ([], [], [])
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        for name in names.sorted() where name.hasSuffix(".jsonl") {
            let path = "\(folder)/\(name)"
            let descriptor = Glibc.open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
            guard descriptor >= 0 else { continue }
            guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
                close(descriptor)
                continue
            }
            dead.descriptors.append(descriptor)
            dead.paths.append(path)
            let lines = (FileManager.default.contents(atPath: path) ?? Data()).prefix(1 << 20).split(separator: 0x0A)
            let isCertain = lines.contains { $0.elementsEqual(PLUGIN_HOST_FATAL_LINE.utf8.dropLast()) }
            dead.entries += lines.compactMap { line in
                var entry = try? Quarantine.decoder.decode(QuarantineEntry.self, from: Data(line))
                if !isCertain { entry?.isSuspected = true }
                return entry
            }
        }
        return dead
    }
}
