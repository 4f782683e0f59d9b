internal import Glibc
internal import PluginABI

/// The control server's thread: waits for all connections at once.
final class ControlLoop {
    private let server: ControlServer
    private let listener: ListeningSocket
    private let limits: ControlServer.Limits
    private let endpoint: RPCEndpoint
    private var connections: [Int: ControlConnection] = [:]
    private var nextNumber = 0
    private var stopsAt: ContinuousClock.Instant?
    /// Accepting failed, for want of descriptors for instance, and is tried again then.
    private var acceptsAgainAt: ContinuousClock.Instant?

    init(server: ControlServer, listener: ListeningSocket, limits: ControlServer.Limits, endpoint: RPCEndpoint) {
        self.server = server
        self.listener = listener
        self.limits = limits
        self.endpoint = endpoint
    }

    func run() {
        while !isDone {
            let waiting = wait()
            takeAnswers()
            if waiting.canAccept { accept() }
            for (number, events) in waiting.events { serve(number, events) }
            closeOverdue()
        }
        for connection in connections.values { connection.close() }
        server.loopEnded()
    }

    private var isDone: Bool {
        guard let stopsAt else { return false }
        return connections.values.allSatisfy { $0.tasks.isEmpty && !$0.hasOutput } || stopsAt <= .now
    }

    // Waiting

    private func wait() -> (canAccept: Bool, events: [(Int, Int16)]) {
        let numbers = connections.keys.sorted()
        let mayAccept = stopsAt == nil && acceptsAgainAt == nil && connections.count < limits.connections
        var polled = [
            pollfd(fd: server.wakeDescriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: mayAccept ? listener.descriptor : -1, events: Int16(POLLIN), revents: 0),
        ]
        polled += numbers.map { interest(in: connections[$0]!) }
        let count = poll(&polled, nfds_t(polled.count), timeout)
        if acceptsAgainAt.map({ $0 <= .now }) ?? false { acceptsAgainAt = nil }
        guard count > 0 else { return (false, []) }
        return (polled[1].revents != 0, zip(numbers, polled[2...]).filter { $1.revents != 0 }.map { ($0, $1.revents) })
    }

    /// A client that has sent all, or that must wait, is only watched where its going away matters at once.
    private func interest(in connection: ControlConnection) -> pollfd {
        var events: Int16 = 0
        if connection.wantsInput, stopsAt == nil { events |= Int16(POLLIN) }
        if connection.hasOutput { events |= Int16(POLLOUT) }
        let isWatched = events != 0 || connection.hasEnded
        return pollfd(fd: isWatched ? connection.descriptor : -1, events: events, revents: 0)
    }

    /// Milliseconds until something falls due; -1 for never.
    private var timeout: CInt {
        let due = connections.values.compactMap(\.lingersUntil) + [stopsAt, acceptsAgainAt].compactMap { $0 }
        guard let first = due.min() else { return -1 }
        return CInt(max(0, min(60_000, (first - .now) / .milliseconds(1) + 1)))
    }

    // Serving

    private func accept() {
        let descriptor = Glibc.accept(listener.descriptor, nil, nil)
        guard descriptor >= 0 else {
            if errno != EAGAIN, errno != EINTR, errno != ECONNABORTED {
                acceptsAgainAt = .now + .milliseconds(100)
            }
            return
        }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        guard UnixSocket.hasTrustedPeer(descriptor) else {
            close(descriptor)
            return
        }
        connections[nextNumber] = ControlConnection(descriptor: descriptor, limits: limits)
        nextNumber += 1
    }

    private func serve(_ number: Int, _ events: Int16) {
        guard let connection = connections[number] else { return }
        var isAlive = true
        if connection.wantsInput, events & Int16(POLLIN | POLLHUP | POLLERR) != 0 {
            isAlive = connection.receive()
        } else if events & Int16(POLLHUP | POLLERR) != 0 {
            isAlive = false
        }
        settle(number, connection, isAlive: isAlive)
    }

    private func takeLines(_ number: Int, _ connection: ControlConnection) {
        while connection.takesLines, stopsAt == nil {
            switch connection.nextLine() {
            case .none: return
            case .whole(let line): begin(line, number, connection)
            case .tooLong:
                let message = "The line is longer than \(limits.lineBytes) bytes."
                connection.send(RPCError.invalidRequest(message).response(id: .null).json)
                connection.linger()
            }
        }
    }

    private func begin(_ line: [UInt8], _ number: Int, _ connection: ControlConnection) {
        guard line.contains(where: { $0 > 0x20 }) else { return }
        let task = nextNumber
        nextNumber += 1
        connection.tasks[task] = Task(executorPreference: BlockingExecutor.shared) { [endpoint, server] in
            let answer = await endpoint.answer(line)
            server.deliver(ControlServer.Answer(connection: number, task: task, line: answer))
        }
    }

    private func takeAnswers() {
        let (answers, stopsAt) = server.takeAnswers()
        if let stopsAt, self.stopsAt == nil {
            self.stopsAt = stopsAt
            listener.remove()
        }
        for answer in answers {
            guard let connection = connections[answer.connection] else { continue }
            connection.tasks[answer.task] = nil
            if let line = answer.line { connection.send(line) }
        }
        for number in Set(answers.map(\.connection)) {
            if let connection = connections[number] { settle(number, connection, isAlive: true) }
        }
    }

    /// Writes what can be written, begins what there is room for, and closes what is finished or broken.
    private func settle(_ number: Int, _ connection: ControlConnection, isAlive: Bool) {
        if isAlive, connection.flush() {
            takeLines(number, connection)
            if !connection.isFinished { return }
        }
        connection.close()
        connections[number] = nil
    }

    private func closeOverdue() {
        for (number, connection) in connections {
            if let until = connection.lingersUntil, until <= .now {
                connection.close()
                connections[number] = nil
            }
        }
    }
}
