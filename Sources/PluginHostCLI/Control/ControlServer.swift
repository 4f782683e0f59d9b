internal import Dispatch
internal import Glibc
internal import PluginABI
internal import Synchronization

/// The control socket of a running host: JSON-RPC 2.0, one message a line.
///
/// One thread owns all connections and never blocks on any of them. Each message is answered by a task of its own, on
/// threads that it may block.
final class ControlServer: Sendable {
    struct Limits: Sendable {
        var lineBytes = 8 << 20
        var requestsInFlight = 64
        var connections = 128
        /// No more lines are taken from a client that leaves so many bytes of answers lying.
        var pendingBytes = 4 << 20
        /// How long a client that is turned away has to read why.
        var linger = Duration.seconds(2)
    }

    /// What tasks and callers hand to the thread.
    struct Inbox {
        var answers: [Answer] = []
        var stopsAt: ContinuousClock.Instant?
        var hasStopped = false
        var stopWaiters: [CheckedContinuation<Void, Never>] = []
    }

    struct Answer {
        let connection: Int
        let task: Int
        let line: String?
    }

    let path: String
    private let inbox = Mutex(Inbox())
    /// The end that wakes the thread, and the end that it waits at.
    private let wake: (sender: CInt, receiver: CInt)

    init(path: String, limits: Limits = Limits(), handler: @escaping RPCEndpoint.Handler) throws(PluginError) {
        var pair: [CInt] = [-1, -1]
        let kind = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &pair) == 0 else {
            throw PluginError(.cannotListen, "No sockets are left: \(String(cString: strerror(errno))).")
        }
        wake = (pair[0], pair[1])
        let listener: ListeningSocket
        do { listener = try ListeningSocket(path: path) } catch {
            close(pair[0])
            close(pair[1])
            throw error
        }
        self.path = path
        // A queue of its own is a thread of its own for as long as the loop runs.
        DispatchQueue(label: "pluginhost.control").async { [self] in
            ControlLoop(server: self, listener: listener, limits: limits, endpoint: RPCEndpoint(handler: handler)).run()
        }
    }

    deinit {
        close(wake.sender)
        close(wake.receiver)
    }

    /// Takes no more requests, removes the socket, and returns when all that run are answered or `grace` has passed.
    func stop(grace: Duration = .seconds(2)) async {
        await withCheckedContinuation { waiter in
            let hasStopped = inbox.withLock { inbox in
                if !inbox.hasStopped { inbox.stopWaiters.append(waiter) }
                if inbox.stopsAt == nil { inbox.stopsAt = .now + grace }
                return inbox.hasStopped
            }
            if hasStopped { waiter.resume() } else { wakeUp() }
        }
    }

    // For the loop and its tasks

    var wakeDescriptor: CInt { wake.receiver }

    func deliver(_ answer: Answer) {
        inbox.withLock { $0.answers.append(answer) }
        wakeUp()
    }

    func takeAnswers() -> (answers: [Answer], stopsAt: ContinuousClock.Instant?) {
        var ignored: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        while recv(wake.receiver, &ignored, 32, Int32(MSG_DONTWAIT)) > 0 {}
        return inbox.withLock { inbox in
            defer { inbox.answers = [] }
            return (inbox.answers, inbox.stopsAt)
        }
    }

    func loopEnded() {
        let waiters = inbox.withLock { inbox in
            inbox.hasStopped = true
            defer { inbox.stopWaiters = [] }
            return inbox.stopWaiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// A full buffer means that the thread has been woken already.
    private func wakeUp() {
        var byte: UInt8 = 1
        _ = send(wake.sender, &byte, 1, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
    }
}
