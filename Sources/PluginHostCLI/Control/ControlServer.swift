internal import CPluginHost
internal import Dispatch
internal import Glibc
internal import PluginABI
internal import PluginHost
internal import Synchronization

/// The control socket of a running host: JSON-RPC 2.0, one message a line.
///
/// One thread owns all connections and never blocks on any of them. Each message is answered by a task of its own; where
/// that runs is the matter of ``ControlRequests``.
final class ControlServer: Sendable {
    struct Limits: Sendable {
        var lineBytes = 8 << 20
        var requestsInFlight = 64
        /// One more closes the client that has been idle for longest; where none is, it has a place of the reserve.
        var connections = 128
        /// How many clients more are served with methods of the host itself alone: whoever runs it can see what it does.
        var reserve = 8
        /// The calls that run at a time, of all clients.
        var calls = CallSlots.Limits()
        /// No more lines are taken from a client that leaves so many bytes of answers lying.
        var pendingBytes = 4 << 20
        /// Requests that are begun all the same end with `overloaded` when so many bytes of answers wait for a client,
        /// and for all.
        var unreadBytes = 64 << 20
        var unreadBytesInAll = 256 << 20
        /// How many bytes the lines have whose requests run, of a client, and of all; a client's only line always runs.
        var lineBytesInFlight = 16 << 20
        var lineBytesInAll = 64 << 20
        /// How many bytes are received and not begun, of all clients; beyond, the line that began first is refused.
        var receivedBytesInAll = 64 << 20
        /// Lines up to this size do not wait for those of other clients, nor make room for them.
        var smallLineBytes = 64 << 10
        /// How many lines are taken from one client before the others have their turn.
        var linesInTurn = 256
        /// A client that reads nothing for so long, while answers wait for it, is closed.
        var readTime = Duration.seconds(10)
        /// A line must have ended so long after its beginning.
        var lineTime = Duration.seconds(60)
        /// How long a client that is turned away has to read why.
        var linger = Duration.seconds(2)
    }

    /// What tasks and callers hand to the thread.
    struct Inbox {
        var answers: [Answer] = []
        var stopsAt: ContinuousClock.Instant?
    }

    typealias Answer = (connection: Int, task: Int, line: String?)

    private let inbox = Mutex(Inbox())
    private let loopHasEnded = DispatchSemaphore(value: 0)
    /// What the thread waits at, to be woken.
    let wakeDescriptor = plugin_host_wake_create()

    init(
        path: String, limits: Limits = Limits(), log: @escaping @Sendable (LogEntry) -> Void = { _ in },
        handler: @escaping RPCEndpoint.Handler
    ) throws(PluginError) {
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

    /// Takes no more requests, removes the socket, and returns when all that run are answered or `grace` has passed.
    ///
    /// Blocks this thread.
    func stop(grace: Duration = .seconds(2)) {
        inbox.withLock { $0.stopsAt = $0.stopsAt ?? .now + grace }
        plugin_host_wake(wakeDescriptor)
        loopHasEnded.wait()
        // For others who stop it, too.
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
