internal import Glibc
internal import PluginABI
internal import PluginHost

/// The loop of the control server's thread. It waits for all connections at once, and blocks on none of them.
final class ControlLoop {
    private let server: ControlServer
    private let limits: ControlServer.Limits
    private let requests: ControlRequests
    private let log: @Sendable (LogEntry) -> Void
    private let door: ControlDoor
    private var connections: [Int: ControlConnection] = [:]
    private var nextNumber = 0
    private var stopsAt: ContinuousClock.Instant?
    private let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 8)

    init(
        server: ControlServer, listener: ListeningSocket, limits: ControlServer.Limits, requests: ControlRequests,
        log: @escaping @Sendable (LogEntry) -> Void
    ) {
        (self.server, self.limits, self.requests, self.log) = (server, limits, requests, log)
        door = ControlDoor(listener: listener, log: log)
    }

    deinit { chunk.deallocate() }

    func run() {
        while !isDone {
            let waiting = wait()
            takeAnswers()
            if waiting.canAccept { accept() }
            for (number, events) in waiting.events { serve(number, events) }
            for (number, connection) in connections where connection.hasMoreLines {
                advance(number, connection, isAlive: true)
            }
            closeOverdue()
        }
        for connection in connections.values { connection.close() }
        requests.end()
        server.loopEnded()
    }

    private var isDone: Bool {
        guard let stopsAt else { return false }
        return connections.values.allSatisfy { !$0.hasTasks && !$0.hasOutput } || stopsAt <= .now
    }

    // Waiting

    private func wait() -> (canAccept: Bool, events: [(Int, Int16)]) {
        let numbers = connections.keys.sorted()
        var polled = [
            pollfd(fd: server.wakeDescriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: stopsAt == nil ? door.descriptor : -1, events: Int16(POLLIN), revents: 0),
        ]
        polled += numbers.map { interest(in: connections[$0]!) }
        let count = poll(&polled, nfds_t(polled.count), timeout)
        guard count > 0 else { return (false, []) }
        return (polled[1].revents != 0, zip(numbers, polled[2...]).filter { $1.revents != 0 }.map { ($0, $1.revents) })
    }

    /// Returns the events to wait for. If nothing is read from a client or written to it, it is watched only once it
    /// has ended its input, in order to notice when it closes the connection.
    private func interest(in connection: ControlConnection) -> pollfd {
        var events: Int16 = 0
        if connection.wantsInput, stopsAt == nil { events |= Int16(POLLIN) }
        if connection.hasOutput { events |= Int16(POLLOUT) }
        let isWatched = events != 0 || connection.hasEnded
        return pollfd(fd: isWatched ? connection.descriptor : -1, events: events, revents: 0)
    }

    /// The number of milliseconds until something is due; -1 for never.
    private var timeout: CInt {
        if connections.values.contains(where: \.hasMoreLines) { return 0 }
        let due = connections.values.compactMap(\.due) + [stopsAt, door.opensAgainAt].compactMap(\.self)
        guard let first = due.min() else { return -1 }
        return CInt(max(0, min(60_000, (first - .now) / .milliseconds(1) + 1)))
    }

    // Clients

    private func accept() {
        let descriptor = door.accept { makeRoom("there is no descriptor left (ulimit -n)") }
        guard let descriptor else { return }
        let isFull =
            connections.count >= limits.connections && !makeRoom("it serves \(limits.connections) at a time")
        guard !isFull || connections.count < limits.connections + limits.reserve else {
            return door.turnAway(
                descriptor,
                "This host serves at most \(limits.connections) clients at a time, and none of them is idle. Close one of "
                    + "them, or try again later.")
        }
        connections[nextNumber] = ControlConnection(
            descriptor: descriptor, limits: limits, load: requests.newLoad(), executor: requests.newExecutor(),
            isReserve: isFull)
        nextNumber += 1
    }

    /// Closes the client that has been idle for the longest time. Returns whether there was one.
    private func makeRoom(_ reason: String) -> Bool {
        let idle = connections.filter(\.value.isIdle).min { $0.value.lastActivity < $1.value.lastActivity }
        guard let (number, connection) = idle else { return false }
        let seconds = (ContinuousClock.now - connection.lastActivity) / .seconds(1)
        door.tell(
            "A client of the control socket was closed after \(Int(seconds)) s without activity, to make room for "
                + "another: \(reason).",
            about: "room", level: .info)
        close(number, connection)
        return true
    }

    private func close(_ number: Int, _ connection: ControlConnection) {
        connection.close()
        connections[number] = nil
        requests.clientHasGone(number)
    }

    private func closeOverdue() {
        for (number, connection) in connections {
            if let until = connection.lingersUntil, until <= .now {
                close(number, connection)
            } else if connection.doesNotRead {
                log(
                    LogEntry(
                        level: .warning,
                        message: "A client of the control socket has read nothing for \(limits.readTime), while "
                            + "\(connection.unreadBytes) bytes of answers wait for it. It is disconnected."))
                close(number, connection)
            } else if connection.doesNotEndLine {
                refuse(number, connection, "The line has not ended within \(limits.lineTime).")
            }
        }
    }

    /// Sends a client the reason why it is disconnected, and stops reading from it.
    private func refuse(_ number: Int, _ connection: ControlConnection, _ message: String) {
        let line = RPCError.invalidRequest(message).response(id: .null).json
        connection.load.add(line.utf8.count)
        connection.send(line)
        connection.linger()
        if !connection.flush() { close(number, connection) }
    }

    // Serving

    private func serve(_ number: Int, _ events: Int16) {
        guard let connection = connections[number] else { return }
        var isAlive = true
        if connection.wantsInput, events & Int16(POLLIN | POLLHUP | POLLERR) != 0 {
            isAlive = connection.receive(chunk)
        } else if events & Int16(POLLHUP | POLLERR) != 0 {
            isAlive = false
        }
        advance(number, connection, isAlive: isAlive)
        boundReceived()
    }

    /// Limits the memory of incomplete lines. Beyond the limit, the client with the oldest line is refused.
    private func boundReceived() {
        while connections.values.reduce(0, { $0 + $1.receivedBytes }) > limits.receivedBytesInAll {
            let oldest = connections.filter { $0.value.receivedBytes > limits.smallLineBytes }
                .min { $0.value.lineBegan ?? $0.value.lastActivity < $1.value.lineBegan ?? $1.value.lastActivity }
            guard let (number, connection) = oldest else { return }
            refuse(
                number, connection,
                "The incomplete lines of all clients have more than \(limits.receivedBytesInAll) bytes, and this one is "
                    + "the oldest.")
        }
    }

    private func takeLines(_ number: Int, _ connection: ControlConnection) {
        (connection.isDeferred, connection.hasMoreLines) = (false, false)
        for _ in 0..<limits.linesInTurn {
            guard connection.takesLines, stopsAt == nil else { return }
            switch connection.findLine() {
            case .none: return
            case .whole(let count):
                let running = connections.values.reduce(0) { $0 + $1.lineBytes }
                if count > limits.smallLineBytes, running > 0, running + count > limits.lineBytesInAll {
                    connection.isDeferred = true
                    return
                }
                begin(connection.takeLine(), number, connection)
            case .tooLong:
                refuse(number, connection, "The line is longer than \(limits.lineBytes) bytes.")
            }
        }
        connection.hasMoreLines = connection.takesLines && stopsAt == nil
    }

    private func begin(_ line: [UInt8], _ number: Int, _ connection: ControlConnection) {
        // A line that consists only of JSON white space is not a request.
        guard line.contains(where: { !"\t\r ".utf8.contains($0) }) else { return }
        let task = nextNumber
        nextNumber += 1
        let endpoint = requests.endpoint(
            for: number, connection.load, connection.executor, isReserve: connection.isReserve)
        let begun = Task(executorPreference: connection.executor) { [server] in
            let answer = await endpoint.answer(line)
            server.deliver((connection: number, task: task, line: answer))
        }
        connection.add(begun, number: task, lineBytes: line.count)
    }

    private func takeAnswers() {
        let (answers, stopsAt) = server.takeAnswers()
        if let stopsAt, self.stopsAt == nil {
            self.stopsAt = stopsAt
            door.close()
        }
        for answer in answers {
            guard let connection = connections[answer.connection] else { continue }
            connection.removeTask(answer.task)
            if let line = answer.line { connection.send(line) }
        }
        let deferred = answers.isEmpty ? [] : connections.filter(\.value.isDeferred).map(\.key)
        for number in Set(answers.map(\.connection) + deferred) {
            if let connection = connections[number] { advance(number, connection, isAlive: true) }
        }
    }

    /// Writes pending answers, processes lines as far as the limits allow, and closes the connection if it is finished
    /// or broken.
    private func advance(_ number: Int, _ connection: ControlConnection, isAlive: Bool) {
        if isAlive, connection.flush() {
            takeLines(number, connection)
            if !connection.isFinished { return }
        }
        close(number, connection)
    }
}
