internal import CPluginHost
internal import Dispatch
internal import Glibc
internal import PluginABI
internal import PluginHost
internal import Synchronization

/// The control socket of a running host: JSON-RPC 2.0, one message per line.
///
/// One thread owns all connections and never blocks on any of them. Each message is answered by a task of its own;
/// ``ControlRequests`` decides on which thread the task runs.
final class ControlServer: Sendable {
    struct Limits: Sendable {
        /// The maximum number of bytes of a line.
        var lineBytes = 8 << 20
        /// The maximum number of running requests of one client.
        var requestsInFlight = 64
        /// The maximum number of clients. A further client replaces the one that has been idle for the longest time; if
        /// no client is idle, the new one gets a connection of the reserve.
        var connections = 128
        /// The number of further clients, which can use only methods that do not wait. Operators can thus inspect a
        /// busy host.
        var reserve = 8
        /// The limits of calls, for all clients together.
        var calls = CallSlots.Limits()
        /// No more lines are read from a client that has left this many bytes of answers unread.
        var pendingBytes = 4 << 20
        /// Further requests of a client end with `overloaded` if this many bytes of answers wait for it.
        var unreadBytes = 64 << 20
        /// Further requests end with `overloaded` if this many bytes of answers wait for all clients together.
        var unreadBytesInAll = 256 << 20
        /// The maximum number of bytes of the lines of a client's running requests. A client's only line always runs.
        var lineBytesInFlight = 16 << 20
        /// The maximum number of bytes of the lines of all running requests.
        var lineBytesInAll = 64 << 20
        /// The maximum number of bytes that are received from all clients and not processed. Beyond it, the client with
        /// the oldest line is refused.
        var receivedBytesInAll = 64 << 20
        /// Lines up to this size do not wait for lines of other clients, and are not refused to make room.
        var smallLineBytes = 64 << 10
        /// The number of lines that are processed for one client before the other clients get their turn.
        var linesInTurn = 256
        /// A client that reads nothing for this long while answers wait for it is disconnected.
        var readTime = Duration.seconds(10)
        /// The longest time from the beginning of a line to its end.
        var lineTime = Duration.seconds(60)
        /// How long a client that is disconnected has to read the reason.
        var linger = Duration.seconds(2)
    }

    /// The data that tasks and callers pass to the thread.
    struct Inbox {
        var answers: [Answer] = []
        var stopsAt: ContinuousClock.Instant?
    }

    typealias Answer = (connection: Int, task: Int, line: String?)

    /// The path of the socket.
    let path: String
    private let inbox = Mutex(Inbox())
    private let loopHasEnded = DispatchSemaphore(value: 0)
    /// The descriptor that wakes the thread.
    let wakeDescriptor = plugin_host_wake_create()

    init(
        path: String, limits: Limits = Limits(), log: @escaping @Sendable (LogEntry) -> Void = { _ in },
        handler: @escaping RPCEndpoint.Handler
    ) throws(PluginError) {
        self.path = path
        guard wakeDescriptor >= 0 else {
            throw PluginError(.cannotListen, "No descriptors are left: \(String(cString: strerror(errno))).")
        }
        let listener = try ListeningSocket(path: path)
        let requests = ControlRequests(limits: limits, handler: handler)
        do throws(PluginError) {
            try DetachedThread.start("host.control") { [self] in
                ControlLoop(server: self, listener: listener, limits: limits, requests: requests, log: log).run()
            }
        } catch {
            requests.end()
            listener.remove()
            throw error
        }
    }

    deinit { close(wakeDescriptor) }

    /// Accepts no more requests, removes the socket, and returns when all running requests are answered or `grace` has
    /// passed. Blocks this thread.
    func stop(grace: Duration = .seconds(2)) {
        inbox.withLock { $0.stopsAt = $0.stopsAt ?? .now + grace }
        plugin_host_wake(wakeDescriptor)
        loopHasEnded.wait()
        // For other callers of `stop`.
        loopHasEnded.signal()
    }

    // For the loop and its tasks

    func deliver(_ answer: Answer) {
        inbox.withLock { $0.answers.append(answer) }
        plugin_host_wake(wakeDescriptor)
    }

    func takeAnswers() -> (answers: [Answer], stopsAt: ContinuousClock.Instant?) {
        plugin_host_wake_clear(wakeDescriptor)
        return inbox.withLock { inbox in
            defer { inbox.answers = [] }
            return (inbox.answers, inbox.stopsAt)
        }
    }

    func loopEnded() { loopHasEnded.signal() }
}
