import Glibc
import PluginABI
import Synchronization

/// The standard output and standard error of a worker process, whose lines become entries of the log.
final class WorkerOutput: Sendable {
    fileprivate struct State {
        var module: String
        var line: [UInt8] = []
        /// The second in which lines are counted, and how many there are.
        var second: Int64 = 0
        var count = 0
    }

    private let state: Mutex<State>
    private let log: @Sendable (LogEntry) -> Void
    /// How many entries wait for ``writer``.
    private let waiting = Atomic<Int>(0)

    /// The thread that writes to the log, which may block. The supervisor must not wait for it.
    private static let writer = SerialThread("host.output")
    /// How many entries of a process may wait; further ones are left out.
    private static let waitingMax = 4096
    /// The longest line; a longer one is broken.
    private static let lineMax = 4096
    /// How many lines are logged in a second; further ones are only counted.
    fileprivate static let linesMax = 1000

    /// - Parameter name: What the lines are about until the name of the module is known.
    init(_ name: String, _ log: @escaping @Sendable (LogEntry) -> Void) {
        state = Mutex(State(module: name))
        self.log = log
    }

    func setModule(_ name: String) { state.withLock { $0.module = name } }

    /// Takes bytes that the process has written.
    func take(_ bytes: UnsafeRawBufferPointer) {
        log(
            state.withLock { state in
                var entries: [LogEntry] = []
                for byte in bytes {
                    if byte != UInt8(ascii: "\n") { state.line.append(byte) }
                    if byte == UInt8(ascii: "\n") || state.line.count >= Self.lineMax { state.endLine(&entries) }
                }
                return entries
            })
    }

    /// Takes the last line, which may have no end.
    func end() {
        log(
            state.withLock { state in
                var entries: [LogEntry] = []
                if !state.line.isEmpty { state.endLine(&entries) }
                state.tellDropped(&entries)
                return entries
            })
    }

    private func log(_ entries: [LogEntry]) {
        guard !entries.isEmpty, waiting.load(ordering: .relaxed) < Self.waitingMax else { return }
        waiting.add(entries.count, ordering: .relaxed)
        Self.writer.async { [self] in
            for entry in entries { log(entry) }
            waiting.subtract(entries.count, ordering: .relaxed)
        }
    }
}

extension WorkerOutput.State {
    fileprivate mutating func endLine(_ entries: inout [LogEntry]) {
        defer { line = [] }
        let now = monotonicNow() / 1_000_000_000
        if now != second {
            tellDropped(&entries)
            (second, count) = (now, 0)
        }
        count += 1
        guard count <= WorkerOutput.linesMax else { return }
        entries.append(LogEntry(level: .info, module: module, message: String(decoding: line, as: UTF8.self)))
    }

    fileprivate mutating func tellDropped(_ entries: inout [LogEntry]) {
        guard count > WorkerOutput.linesMax else { return }
        let message = "\(count - WorkerOutput.linesMax) more lines of its output in this second are left out."
        entries.append(LogEntry(level: .warning, module: module, message: message))
        count = 0
    }
}
