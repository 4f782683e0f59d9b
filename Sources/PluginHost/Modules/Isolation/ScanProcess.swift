import CDispatch
import CPluginHost
import CPluginWire
import Glibc
import PluginABI
import PluginFile

/// A process that opens files before the host does: one run of the program that workers run.
///
/// It ends when the thread that has started it ends; that thread waits for it.
struct ScanProcess {
    /// What happened to a file, according to the process.
    enum Finding: Equatable {
        /// The process has not begun with the file, or reports something invalid.
        case untouched
        case opening
        case entering
        case passed
        case refused(reason: String)
        case hasNoEntry

        /// Whether the process had not finished with the file.
        var isUnfinished: Bool { [.untouched, .opening, .entering].contains(self) }
    }

    enum Ending: Equatable, CustomStringConvertible {
        case exited(Int32)
        case killed(signal: Int32)
        /// The process made no progress for too long.
        case overdue
        /// Other code of the program has reaped the process.
        case unknown

        /// What the process did, as the predicate of a sentence.
        var description: String {
            switch self {
            case .exited(let code): "exited with code \(code)"
            case .killed(let signal): "crashed (signal \(signal), \(String(cString: strsignal(signal))))"
            case .overdue: "made no progress and was ended"
            case .unknown: "ended"
            }
        }
    }

    /// What is wanted of a module besides whether it can be opened.
    enum Details {
        case nothing
        /// The manifest with the types that the module derives.
        case types
        /// The description, and the manifest with types.
        case description
    }

    struct Outcome {
        let findings: [Finding]
        let ending: Ending
        /// The end of the process's output.
        let lastWords: String
        /// Whether the process has described the module in the only file.
        var isDescribed = false
        /// The description of that module, if it was requested. It is not checked, and never freed.
        var description: UnsafePointer<plugin_module>?
        /// The names of the modules according to the process, if they are wanted.
        var names: [String?] = []
        /// The manifest with the types that the module derives, unchecked; `nil` if it derives none.
        var typedManifest: String?
        /// The module's notes about types; if the code of a type has ended the process, that type.
        var words = ""

        /// The end of the process's output, as a sentence to append; empty if there was no output.
        var lastSentence: String {
            let words = lastWords.split(separator: "\n").last.map(String.init) ?? ""
            return words.isEmpty ? "" : " Its last words: “\(words.shortened)”."
        }
    }

    /// How many files a process opens at most.
    static let filesMax = Int(PLUGIN_SCAN_MAX_FILES)
    /// How much of the output is kept, in bytes.
    private static let wordsMax = 500

    private let scan: OpaquePointer
    private let count: Int
    private let id: pid_t
    /// The descriptor of the process.
    private let descriptor: Int32
    /// The pipe for its output.
    private let output: Int32

    /// Opens files in a process, and waits for its end.
    ///
    /// - Parameters:
    ///   - files: At most ``filesMax``.
    ///   - limit: How long the constructors or the entry function of a file may take.
    ///   - names: Whether the names of the modules are wanted.
    ///   - details: What is wanted of the module in the only file.
    ///   - without: The types that are not derived, so that their code does not run.
    /// - Throws: `openFailed` if the process cannot be started.
    static func run(
        _ files: some Collection<StagedFile>, program: String, limit: Duration, names: Bool = false,
        details: Details = .nothing, without: [String] = []
    ) throws(PluginError) -> Outcome {
        let memory = plugin_scan_create()
        guard memory >= 0 else { throw failure("its memory cannot be created", errno) }
        defer { close(memory) }
        guard let scan = plugin_scan_map(memory) else { throw failure("its memory cannot be mapped", errno) }
        defer { plugin_scan_unmap(scan) }
        var pipe: [Int32] = [-1, -1]
        guard plugin_host_pipe(&pipe) == 0 else { throw failure("the pipe for its output cannot be created", errno) }
        defer { close(pipe[0]) }
        _ = fcntl(pipe[0], F_SETFL, O_NONBLOCK)
        // Rounded up, with a second for the start of the process.
        let seconds = Int((limit / .seconds(1) * Double(files.count)).rounded(.up)) + 1
        let started = Swift.Result { () throws(PluginError) in
            let arguments =
                [details != .nothing ? "describe" : "scan", "\(getpid())", "\(seconds)"]
                + files.map(\.path) + (details != .nothing ? [without.joined(separator: "\n")] : [])
            return try spawn(program, arguments, memory, output: pipe[1])
        }
        close(pipe[1])
        let id = try started.get()
        let descriptor = plugin_host_process_open(id)
        guard descriptor >= 0 else {
            let error = failure("a descriptor for it cannot be created", errno)
            _ = plugin_host_process_end_group(id)
            throw error
        }
        defer { close(descriptor) }
        let process = ScanProcess(
            scan: scan, count: files.count, id: id, descriptor: descriptor, output: pipe[0])
        var outcome = process.finish(limit)
        outcome.names = names ? process.names : files.map { _ in nil }
        if details != .nothing, outcome.findings == [.passed] {
            process.addDescription(to: &outcome, isFull: details == .description)
            outcome.words = process.reason(0)
        }
        return outcome
    }

    private static func failure(_ what: String, _ code: Int32) -> PluginError {
        PluginError(.openFailed, "A scan process cannot be started: \(what): \(describe(errno: code)).")
    }

    private static func spawn(
        _ program: String, _ arguments: [String], _ memory: Int32, output: Int32
    ) throws(PluginError) -> pid_t {
        do throws(WorkerProgram.Failure) {
            return try WorkerProgram.start(program, arguments, output: output, [memory], group: true)
        } catch {
            switch error {
            case .descriptors(let code): throw failure("its descriptors cannot be created", code)
            case .program(let code): throw failure("the program \(program) cannot be run", code)
            }
        }
    }

    // MARK: The end

    private func finish(_ limit: Duration) -> Outcome {
        var words: [UInt8] = []
        let isOverdue = !waitForEnd(limit, &words)
        let status = plugin_host_process_end_group(id)
        for _ in 0..<64 where read(into: &words) == .bytes {}
        return Outcome(
            findings: (0..<count).map(finding), ending: isOverdue ? .overdue : Self.ending(status),
            lastWords: String(decoding: words.suffix(Self.wordsMax), as: UTF8.self))
    }

    private static func ending(_ status: Int32) -> Ending {
        if status == -1 { return .unknown }
        let signal = status & 0x7F
        return signal != 0 ? .killed(signal: signal) : .exited(status >> 8 & 0xFF)
    }

    /// Waits until the process has ended. Returns false if it makes no progress for too long.
    private func waitForEnd(_ limit: Duration, _ words: inout [UInt8]) -> Bool {
        var progress = -1
        var since = monotonicNow()
        let pause = min(100, max(1, limit.nanoseconds / 4_000_000))
        var polled = [
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: output, events: Int16(POLLIN), revents: 0),
        ]
        while true {
            let isQuiet = poll(&polled, nfds_t(polled.count), Int32(pause)) <= 0
            if !isQuiet, polled[1].revents != 0, read(into: &words) == .end { polled[1].fd = -1 }
            if !isQuiet, polled[0].revents != 0 { return true }
            let now = monotonicNow()
            // Only an increase counts, so that the process cannot prolong its life by going back.
            if case let present = self.progress, present > progress { (progress, since) = (present, now) }
            if now - since > limit.nanoseconds { return false }
        }
    }

    /// The progress of the process: the sum of the steps that it has reached with its files.
    private var progress: Int {
        let steps = (0..<count).map { plugin_scan_get_step(scan, UInt32($0)) }
        return steps.reduce(0) { $0 + Int(min($1, PLUGIN_SCAN_PASSED.rawValue)) }
    }

    /// - Parameter isFull: Whether the description itself is wanted.
    private func addDescription(to outcome: inout Outcome, isFull: Bool) {
        var message = plugin_wire_message()
        guard plugin_scan_get_description(scan, &message) == 0 else { return }
        defer { plugin_wire_dispose(&message) }
        outcome.isDescribed = true
        outcome.typedManifest = message.string(WorkerDescription.valueCount).flatMap { $0.count > 0 ? $0.text : nil }
        if isFull { outcome.description = WorkerDescription.make(message, nil) }
    }

    private func reason(_ file: UInt32) -> String {
        var reason = [CChar](repeating: 0, count: Int(PLUGIN_SCAN_REASON_BYTES))
        plugin_scan_get_reason(scan, file, &reason)
        return String(decoding: reason.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    private var names: [String?] {
        var manifest = [UInt8](repeating: 0, count: Int(PLUGIN_MANIFEST_MAX_BYTES))
        return (0..<count).map { index in
            guard finding(index) == .passed else { return nil }
            let length = plugin_scan_get_manifest(scan, UInt32(index), &manifest)
            return (try? Value(jsonMessage: Array(manifest[..<Int(length)])))?["name"]?.string
        }
    }

    private func finding(_ index: Int) -> Finding {
        let file = UInt32(index)
        switch plugin_scan_step(rawValue: plugin_scan_get_step(scan, file)) {
        case PLUGIN_SCAN_OPENING: return .opening
        case PLUGIN_SCAN_ENTERING: return .entering
        case PLUGIN_SCAN_PASSED: return .passed
        case PLUGIN_SCAN_REFUSED:
            return .refused(reason: reason(file))
        case PLUGIN_SCAN_NO_ENTRY: return .hasNoEntry
        default: return .untouched
        }
    }

    /// The result of a read: bytes, nothing yet, or the end of the output.
    private enum Reading { case bytes, nothing, end }

    private func read(into words: inout [UInt8]) -> Reading {
        withUnsafeTemporaryAllocation(byteCount: 65536, alignment: 1) { buffer in
            let count = Glibc.read(output, buffer.baseAddress, buffer.count)
            guard count > 0 else { return count == 0 ? .end : .nothing }
            words = (words + buffer[..<count]).suffix(Self.wordsMax)
            return .bytes
        }
    }
}
