internal import Glibc

/// One client of the control socket: its lines, its answers, and its running requests. Used only on the server's
/// thread.
final class ControlConnection {
    let descriptor: CInt
    private let limits: ControlServer.Limits
    /// The bytes of answers that are made but not sent.
    let load: ClientLoad
    let executor: ClientExecutor
    /// Whether the client has one of the connections that are reserved for the host's own methods.
    let isReserve: Bool
    /// The running requests of this client by number, each with the number of bytes of its line.
    private var tasks: [Int: (task: Task<Void, Never>, lineBytes: Int)] = [:]
    private(set) var lineBytes = 0
    /// Whether the client has closed its side, and will send nothing more.
    private(set) var hasEnded = false
    /// The time when the connection is closed, if that is decided. Nothing more is read or answered; the client can
    /// still read what was written.
    private(set) var lingersUntil: ContinuousClock.Instant?
    /// Whether a complete line is waiting for lines of other clients to be answered.
    var isDeferred = false
    /// Whether there are more complete lines than are processed in one turn.
    var hasMoreLines = false
    /// The time when something was last received, sent or answered.
    private(set) var lastActivity = ContinuousClock.now
    /// The time when the client last read something, or had nothing to read.
    private var lastTaken = ContinuousClock.now
    /// The time when the incomplete line began.
    private(set) var lineBegan: ContinuousClock.Instant?

    private var received: [UInt8] = []
    /// The offset in `received` where the next line begins.
    private var lineStart = 0
    /// The offset in `received` up to which the end of that line has been searched for.
    private var searched = 0
    private var pending: [String] = []
    private var pendingBytes = 0
    /// The number of bytes of the first pending text that have been sent.
    private var sent = 0

    init(descriptor: CInt, limits: ControlServer.Limits, load: ClientLoad, executor: ClientExecutor, isReserve: Bool) {
        (self.descriptor, self.limits, self.load) = (descriptor, limits, load)
        (self.executor, self.isReserve) = (executor, isReserve)
    }

    var hasOutput: Bool { !pending.isEmpty }
    var hasTasks: Bool { !tasks.isEmpty }
    var receivedBytes: Int { received.count - lineStart }
    var unreadBytes: Int { pendingBytes - sent }

    /// Whether another line may be processed: not too many requests are running, and the client reads its answers.
    var takesLines: Bool {
        lingersUntil == nil && tasks.count < limits.requestsInFlight && unreadBytes < limits.pendingBytes
            && (tasks.isEmpty || lineBytes < limits.lineBytesInFlight)
    }

    var wantsInput: Bool { !hasEnded && (takesLines && !isDeferred && !hasMoreLines || lingersUntil != nil) }

    /// Whether nothing is left to do: the client sends nothing more, and has been sent everything.
    var isFinished: Bool { hasEnded && tasks.isEmpty && !hasOutput && lineStart == received.count }

    /// Whether nothing is running or waiting, so that the connection may be closed to make room for another client.
    var isIdle: Bool { tasks.isEmpty && !hasOutput && !hasMoreLines && !isDeferred }

    /// The time when the connection must be closed, unless something happens before then.
    var due: ContinuousClock.Instant? {
        [lingersUntil, hasOutput ? lastTaken + limits.readTime : nil, lineBegan.map { $0 + limits.lineTime }]
            .compactMap(\.self).min()
    }

    var doesNotRead: Bool { hasOutput && lastTaken + limits.readTime <= .now }
    var doesNotEndLine: Bool { lingersUntil == nil && lineBegan.map { $0 + limits.lineTime <= .now } ?? false }

    // Lines

    /// Reads available bytes. Returns false if the connection is broken.
    func receive(_ chunk: UnsafeMutableRawBufferPointer) -> Bool {
        let count = recv(descriptor, chunk.baseAddress, chunk.count, Int32(MSG_DONTWAIT))
        if count < 0 { return errno == EAGAIN || errno == EINTR }
        if count == 0 { hasEnded = true }
        lastActivity = .now
        if lingersUntil == nil { received += chunk[..<count] }
        return true
    }

    enum Line {
        /// A complete line of this many bytes, without its line feed.
        case whole(Int)
        case tooLong
        case none
    }

    /// Finds the end of the next line. The last line does not need a line feed.
    func findLine() -> Line {
        let end = received.withUnsafeBytes { bytes -> Int? in
            guard searched < bytes.count, let start = bytes.baseAddress else { return nil }
            return memchr(start + searched, 10, bytes.count - searched).map { UnsafeRawPointer($0) - start }
        }
        searched = end ?? received.count
        if searched - lineStart > limits.lineBytes { return .tooLong }
        guard end != nil || hasEnded && searched > lineStart else {
            lineBegan = lineStart < received.count ? lineBegan ?? .now : nil
            return .none
        }
        lineBegan = nil
        return .whole(searched - lineStart)
    }

    /// Removes and returns the line that was found.
    func takeLine() -> [UInt8] {
        defer { searched = lineStart }
        if lineStart == 0, searched + 1 >= received.count {
            // The usual case, also for long lines: nothing is copied.
            var line = received
            received = []
            if line.count > searched { line.removeLast() }
            return line
        }
        let line = Array(received[lineStart..<searched])
        lineStart = min(searched + 1, received.count)
        if lineStart == received.count || lineStart > 1 << 20 {
            received.removeFirst(lineStart)
            lineStart = 0
        }
        return line
    }

    // Tasks

    func add(_ task: Task<Void, Never>, number: Int, lineBytes: Int) {
        tasks[number] = (task, lineBytes)
        self.lineBytes += lineBytes
    }

    func removeTask(_ number: Int) {
        lineBytes -= tasks.removeValue(forKey: number)?.lineBytes ?? 0
        lastActivity = .now
    }

    // Answers

    /// Queues a line to be sent. Its bytes are already counted in ``load``.
    func send(_ line: consuming String) {
        let count = line.utf8.count
        guard lingersUntil == nil else { return load.remove(count) }
        if !hasOutput { lastTaken = .now }
        load.add(1)
        pendingBytes += count + 1
        if count < 4096 {
            pending.append(line + "\n")
        } else {
            pending.append(line)
            pending.append("\n")
        }
    }

    /// Writes as much as the client accepts, up to a limit for each call of this function. Returns false if the
    /// connection is broken.
    func flush() -> Bool {
        var budget = 1 << 20
        while hasOutput, budget > 0 {
            let total = pending[0].utf8.count
            let count = pending[0].withUTF8 { bytes in
                Glibc.send(
                    descriptor, bytes.baseAddress! + sent, bytes.count - sent,
                    Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
            }
            if count < 0 { return errno == EAGAIN || errno == EINTR }
            budget -= count
            sent += count
            load.remove(count)
            lastTaken = .now
            lastActivity = lastTaken
            guard sent == total else { continue }
            pendingBytes -= total
            sent = 0
            pending.removeFirst()
        }
        if lingersUntil != nil, !hasOutput { shutdown(descriptor, Int32(SHUT_WR)) }
        return true
    }

    /// Stops reading and answering, and ends the connection when the pending answers are written.
    func linger() {
        lingersUntil = .now + limits.linger
        received = []
        lineBegan = nil
        (lineStart, searched) = (0, 0)
        (isDeferred, hasMoreLines) = (false, false)
    }

    func close() {
        for task in tasks.values { task.task.cancel() }
        Glibc.close(descriptor)
    }
}
