import Glibc
import PluginABI
import Synchronization

/// The standard output and standard error of a worker process, whose lines become entries of the log.
final class WorkerOutput: Sendable {
    fileprivate struct State {
        var module: String
        /// The host's end of the pipe; -1 when it is closed.
        var descriptor: Int32
        var line: [UInt8] = []
        /// The second in which lines are counted, and how many there are.
        var second: Int64 = 0
        var count = 0
    }

    /// The host's end of the pipe, while it is open.
    let descriptor: Int32
    let lastWords = LastWords()
    private let state: Mutex<State>
    private let log: @Sendable (LogEntry) -> Void
    /// How many entries wait for ``writer``.
    private let waiting = Atomic<Int>(0)
    /// How many entries were left out because too many were waiting, since that was last reported.
    private let leftOut = Atomic<Int>(0)

    /// The thread that writes to the log, which may block. The supervisor must not wait for it.
    private static let writer = SerialThread("host.output")
    /// How many entries of a process may wait; further ones are left out.
    private static let waitingMax = 4096
    /// The length of the longest line; a longer one is split.
    private static let lineMax = 4096
    /// How many lines are logged in a second; further ones are only counted.
    fileprivate static let linesMax = 1000

    /// - Parameters:
    ///   - name: What the lines are about until the name of the module is known.
    ///   - descriptor: The host's end of the pipe, which this object takes over. Reading from it must not block.
    init(_ name: String, descriptor: Int32, _ log: @escaping @Sendable (LogEntry) -> Void) {
        state = Mutex(State(module: name, descriptor: descriptor))
        (self.descriptor, self.log) = (descriptor, log)
    }

    func setModule(_ name: String) { state.withLock { $0.module = name } }

    /// The result of a read: bytes, nothing yet, or the end of the output.
    enum Reading { case bytes, nothing, end }

    /// Reads what the process has written, a limited amount at a time, so that others need not wait. May be called from
    /// any thread.
    @discardableResult
    func read() -> Reading {
        withUnsafeTemporaryAllocation(byteCount: 65536, alignment: 1) { buffer in
            state.withLock { state in
                guard state.descriptor >= 0 else { return .end }
                let count = Glibc.read(state.descriptor, buffer.baseAddress, buffer.count)
                guard count > 0 else { return count == 0 ? .end : .nothing }
                // Under the lock, so that the lines stay in order.
                log(take(UnsafeRawBufferPointer(rebasing: buffer[..<count]), &state))
                return .bytes
            }
        }
    }

    private func take(_ bytes: UnsafeRawBufferPointer, _ state: inout State) -> [LogEntry] {
        var entries: [LogEntry] = []
        for byte in bytes {
            if byte != UInt8(ascii: "\n") { state.line.append(byte) }
            if byte == UInt8(ascii: "\n") || state.line.count >= Self.lineMax { state.endLine(&entries, lastWords) }
        }
        return entries
    }

    /// Adds an entry of the log to the last words, after what the process has written before.
    func noteLog(_ text: String) {
        read()
        lastWords.add(text)
    }

    func close() {
        state.withLock { state in
            if state.descriptor >= 0 { Glibc.close(state.descriptor) }
            state.descriptor = -1
        }
    }

    /// Takes the last line, which may lack a line feed.
    func end() {
        log(
            state.withLock { state in
                var entries: [LogEntry] = []
                if !state.line.isEmpty { state.endLine(&entries, lastWords) }
                state.tellDropped(&entries)
                return entries
            })
    }

    private func log(_ entries: [LogEntry]) {
        guard let first = entries.first else { return }
        guard waiting.load(ordering: .relaxed) < Self.waitingMax else {
            leftOut.add(entries.count, ordering: .relaxed)
            return
        }
        let count = leftOut.exchange(0, ordering: .relaxed)
        let message = "\(count) more lines of its output are left out, because the log is slow."
        let entries =
            count == 0 ? entries : [LogEntry(level: .warning, module: first.module, message: message)] + entries
        waiting.add(entries.count, ordering: .relaxed)
        Self.writer.async { [self] in
            for entry in entries { log(entry) }
            waiting.subtract(entries.count, ordering: .relaxed)
        }
    }
}

extension WorkerOutput.State {
    fileprivate mutating func endLine(_ entries: inout [LogEntry], _ lastWords: LastWords) {
        defer { line = [] }
        let text = String(decoding: line, as: UTF8.self)
        lastWords.addOutput(text)
        let now = monotonicNow() / 1_000_000_000
        if now != second {
            tellDropped(&entries)
            (second, count) = (now, 0)
        }
        count += 1
        guard count <= WorkerOutput.linesMax else { return }
        entries.append(LogEntry(level: .info, module: module, message: text))
    }

    fileprivate mutating func tellDropped(_ entries: inout [LogEntry]) {
        guard count > WorkerOutput.linesMax else { return }
        let message = "\(count - WorkerOutput.linesMax) more lines of its output in this second are left out."
        entries.append(LogEntry(level: .warning, module: module, message: message))
        count = 0
    }
}
