import CPluginWire
import Glibc
import Synchronization

/// The one-way messages of the host to a worker: outcomes of its requests, cancellations, the ends of objects. They are
/// sent over a socket; what the socket does not accept immediately waits here, so that no thread waits for the worker.
final class WorkerOutbox: Sendable {
    fileprivate struct State {
        /// The socket; -1 after the end.
        var socket: Int32
        /// The waiting messages as bytes, and how many of the bytes have been sent.
        var waiting: [UInt8] = []
        var sent = 0
        /// The descriptors to send with some of these bytes, in order. Each is closed when it has been sent.
        var descriptors: [(place: Int, descriptor: Int32)] = []
    }

    private let state: Mutex<State>

    /// How many bytes may wait. A worker that leaves more than this unread is considered to hang.
    private static let waitingMax = 64 << 20

    init(_ socket: Int32) { state = Mutex(State(socket: socket)) }

    /// The result of an attempt to send.
    enum Outcome { case sent, waits, full }

    /// Sends a message, or lets it wait for ``flush()``. Its values are borrowed.
    ///
    /// - Parameter descriptor: A descriptor to be sent with it, and then closed; -1 for none.
    /// - Returns: `full` if so much waits that the worker must be considered to hang.
    func post(_ message: plugin_wire_message, _ descriptor: Int32 = -1) -> Outcome {
        var count = 0
        let bytes = withUnsafePointer(to: message) { plugin_wire_pack($0, &count) }
        defer { free(bytes) }
        return state.withLock { state in
            // A worker receives the descriptor of a room before it leaves the room, so no more descriptors than rooms
            // can wait.
            let hasRoom = descriptor < 0 || state.descriptors.count < Int(PLUGIN_WIRE_ROOMS)
            guard state.socket >= 0, let bytes, hasRoom,
                state.waiting.count - state.sent + count <= Self.waitingMax
            else {
                if descriptor >= 0 { Glibc.close(descriptor) }
                return state.socket >= 0 ? .full : .sent
            }
            if descriptor >= 0 { state.descriptors.append((state.waiting.count, descriptor)) }
            state.waiting.append(contentsOf: UnsafeBufferPointer(start: bytes, count: count))
            return state.flush()
        }
    }

    /// Sends the waiting messages, until the socket accepts no more data.
    ///
    /// - Returns: `full` like ``post(_:_:)``.
    func flush() -> Outcome { state.withLock { $0.flush() } }

    /// Whether messages are waiting until the socket accepts more data.
    var waits: Bool { state.withLock { !$0.waiting.isEmpty } }

    /// Closes the socket; messages are discarded from then on.
    func close() {
        state.withLock { state in
            if state.socket >= 0 { Glibc.close(state.socket) }
            for (_, descriptor) in state.descriptors { Glibc.close(descriptor) }
            state = State(socket: -1)
        }
    }
}

extension WorkerOutbox.State {
    fileprivate mutating func flush() -> WorkerOutbox.Outcome {
        while sent < waiting.count, socket >= 0 {
            // A descriptor goes with the first of the bytes that are sent together.
            let isFirst = descriptors.first?.place == sent
            let end = descriptors.dropFirst(isFirst ? 1 : 0).first?.place ?? waiting.count
            let count = waiting.withUnsafeBytes { bytes in
                plugin_wire_post(
                    socket, bytes.baseAddress! + sent, end - sent, isFirst ? descriptors[0].descriptor : -1)
            }
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN {
                if sent > 1 << 20 { removeSent() }
                return .waits
            }
            // More descriptors are in transit than this process may have.
            if count < 0, errno == ETOOMANYREFS { return .full }
            // A message of which a part was sent cannot be sent again.
            if count < 0, ![EPIPE, ECONNRESET, ENOTCONN].contains(errno) { return .full }
            // The worker has closed its end, which the supervisor notices.
            guard count > 0 else { break }
            if isFirst { Glibc.close(descriptors.removeFirst().descriptor) }
            sent += Int(count)
        }
        for (_, descriptor) in descriptors { Glibc.close(descriptor) }
        (waiting, sent, descriptors) = ([], 0, [])
        return .sent
    }

    private mutating func removeSent() {
        waiting.removeSubrange(..<sent)
        for index in descriptors.indices { descriptors[index].place -= sent }
        sent = 0
    }
}
