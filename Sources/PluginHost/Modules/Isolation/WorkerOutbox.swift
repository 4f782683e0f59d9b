import CPluginWire
import Glibc
import Synchronization

/// The one-way messages of the host to a worker: outcomes of its requests, cancellations, the ends of objects. They are
/// sent over a socket; what it does not take at once waits here, so that no thread waits for the worker.
final class WorkerOutbox: Sendable {
    fileprivate struct State {
        /// The socket; -1 after the end.
        var socket: Int32
        /// The bytes that wait, and how many at their beginning are sent.
        var waiting: [UInt8] = []
        var sent = 0
    }

    private let state: Mutex<State>

    /// How many bytes may wait: a worker that does not take them for so long does not run its code in time either.
    private static let waitingMax = 64 << 20

    init(_ socket: Int32) { state = Mutex(State(socket: socket)) }

    /// The result of an attempt to send.
    enum Outcome { case sent, waits, full }

    /// Sends a message, or lets it wait for ``flush()``. Its values are borrowed.
    ///
    /// - Returns: `full` if so much waits that the worker must be considered to hang.
    func post(_ message: plugin_wire_message) -> Outcome {
        var count = 0
        guard let bytes = withUnsafePointer(to: message, { plugin_wire_pack($0, &count) }) else { return .full }
        defer { free(bytes) }
        return state.withLock { state in
            guard state.socket >= 0 else { return .sent }
            guard state.waiting.count - state.sent + count <= Self.waitingMax else { return .full }
            state.waiting.append(contentsOf: UnsafeBufferPointer(start: bytes, count: count))
            return state.flush()
        }
    }

    /// Sends what waits, as far as the socket takes it.
    @discardableResult
    func flush() -> Outcome { state.withLock { $0.flush() } }

    /// Whether something waits until the socket takes more.
    var waits: Bool { state.withLock { !$0.waiting.isEmpty } }

    /// Closes the socket; messages are discarded from now on.
    func close() {
        state.withLock { state in
            if state.socket >= 0 { Glibc.close(state.socket) }
            state = State(socket: -1)
        }
    }
}

extension WorkerOutbox.State {
    fileprivate mutating func flush() -> WorkerOutbox.Outcome {
        while sent < waiting.count, socket >= 0 {
            let count = waiting.withUnsafeBytes { bytes in
                send(
                    socket, bytes.baseAddress! + sent, waiting.count - sent, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
            }
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN { return .waits }
            // Any other error: the worker has closed its end, which the supervisor notices.
            guard count > 0 else { break }
            sent += count
        }
        (waiting, sent) = ([], 0)
        return .sent
    }
}
