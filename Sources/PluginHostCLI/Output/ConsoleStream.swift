internal import CPluginHost
internal import Glibc
internal import PluginHost
internal import Synchronization

/// Standard output or standard error.
///
/// At first, a thread that prints a line waits until the line is written. After ``beginBuffering(_:)``, a thread of the
/// stream writes, and printing does not wait. Lines that do not fit into the buffer are lost, but counted.
final class ConsoleStream: Sendable {
    /// The size of the buffer in bytes.
    static let bufferLimit = 1 << 20

    private struct State {
        /// Makes the line that replaces lost lines; `nil` while there is no buffer.
        var note: (@Sendable (Int) -> String)?
        var waiting: [String] = []
        var waitingBytes = 0
        var lost = 0
        /// Whether the stream's thread is writing, or about to.
        var isWriting = false
        var isClosed = false
        var hasFailed = false
    }

    private let descriptor: CInt
    private let isTerminal: Bool
    private let state = Mutex(State())
    private let thread = SerialThread("host.console")

    init(_ descriptor: CInt) { (self.descriptor, isTerminal) = (descriptor, isatty(descriptor) == 1) }

    /// Whether the reader has closed the stream.
    var isClosed: Bool { state.withLock(\.isClosed) }

    /// Whether output could not be written, for example to a full disk.
    var hasFailed: Bool { state.withLock(\.hasFailed) }

    func write(_ text: String) {
        let begins: Bool? = state.withLock { state in
            guard let note = state.note else { return nil }
            guard state.waitingBytes == 0 || state.waitingBytes + text.utf8.count <= Self.bufferLimit else {
                state.lost += 1
                return false
            }
            if state.lost > 0 { append(note(state.lost) + "\n", to: &state) }
            state.lost = 0
            append(text, to: &state)
            defer { state.isWriting = true }
            return !state.isWriting
        }
        // Without a buffer, the queue is used, too, so that lines of different threads do not mix.
        guard let begins else { return thread.sync { put([text]) } }
        if begins { thread.async { self.drain() } }
    }

    private func append(_ text: String, to state: inout State) {
        state.waiting.append(text)
        state.waitingBytes += text.utf8.count
    }

    /// Begins buffering.
    ///
    /// - Parameter note: Makes the line that states how many lines were lost.
    func beginBuffering(_ note: @escaping @Sendable (_ lines: Int) -> String) {
        thread.retainThread()
        state.withLock { $0.note = note }
    }

    /// Waits until everything is written, but not longer than until `end`. Returns whether everything is written.
    func flush(until end: ContinuousClock.Instant) -> Bool {
        while state.withLock(\.isWriting) {
            guard ContinuousClock.now < end else { return false }
            usleep(2_000)
        }
        return true
    }

    private func drain() {
        while true {
            let waiting = state.withLock { state in
                defer { (state.waiting, state.waitingBytes) = ([], 0) }
                state.isWriting = !state.waiting.isEmpty
                return state.waiting
            }
            if waiting.isEmpty { return }
            put(waiting)
        }
    }

    /// Writes texts, above the line that is being edited.
    private func put(_ texts: [String]) {
        if isTerminal { plugin_host_editor_begin_output() }
        for text in texts { put(text) }
        if isTerminal { plugin_host_editor_end_output() }
    }

    private func put(_ text: String) {
        var text = text
        text.withUTF8 { bytes in
            var rest = UnsafeRawBufferPointer(bytes)
            while !rest.isEmpty {
                let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
                if count > 0 {
                    rest = UnsafeRawBufferPointer(rebasing: rest[count...])
                } else if errno == EAGAIN {
                    var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    poll(&ready, 1, -1)
                } else if errno != EINTR {
                    let code = errno
                    state.withLock { if code == EPIPE { $0.isClosed = true } else { $0.hasFailed = true } }
                    return
                }
            }
        }
    }
}
