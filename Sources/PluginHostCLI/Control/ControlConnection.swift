internal import Glibc

/// One client of the control socket: its lines, its answers, and what it waits for. Only the server's thread uses it.
final class ControlConnection {
    let descriptor: CInt
    private let limits: ControlServer.Limits
    /// The answers that are made and not sent.
    let load: ClientLoad
    let executor: ClientExecutor
    /// Whether it has one of the places that are kept for the host's own methods.
    let isReserve: Bool
    /// What runs for this client, by number, and how many bytes its line had.
    private var tasks: [Int: (task: Task<Void, Never>, lineBytes: Int)] = [:]
    private(set) var lineBytes = 0
    /// The client will send no more.
    private(set) var hasEnded = false
    /// No more is read or answered; the client has until then to take what was written.
    private(set) var lingersUntil: ContinuousClock.Instant?
    /// A whole line waits until those of other clients are answered.
    var isDeferred = false
    /// There are more whole lines than one turn takes.
    var hasMoreLines = false
    /// When something was last received, sent or answered.
    private(set) var lastActivity = ContinuousClock.now
    /// When the client last took something, or had nothing to take.
    private var lastTaken = ContinuousClock.now
    /// When the line began that has no end yet.
    private(set) var lineBegan: ContinuousClock.Instant?

    private var received: [UInt8] = []
    /// Where the next line begins, and how far the search for its end has come.
    private var lineStart = 0
    private var searched = 0
    private var pending: [String] = []
    private var pendingBytes = 0
    /// How much of the first one is sent.
    private var sent = 0

    init(descriptor: CInt, limits: ControlServer.Limits, load: ClientLoad, executor: ClientExecutor, isReserve: Bool) {
        self.descriptor = descriptor
        self.limits = limits
        self.load = load
        self.executor = executor
        self.isReserve = isReserve
    }

    var hasOutput: Bool { !pending.isEmpty }
    var hasTasks: Bool { !tasks.isEmpty }
    var receivedBytes: Int { received.count - lineStart }
    var unreadBytes: Int { pendingBytes - sent }

    /// Another line may be begun: not too many run, and the client takes its answers.
    var takesLines: Bool {
        lingersUntil == nil && tasks.count < limits.requestsInFlight && unreadBytes < limits.pendingBytes
            && (tasks.isEmpty || lineBytes < limits.lineBytesInFlight)
    }

    var wantsInput: Bool { !hasEnded && (takesLines && !isDeferred && !hasMoreLines || lingersUntil != nil) }

    /// Nothing is left to do.
    var isFinished: Bool { hasEnded && tasks.isEmpty && !hasOutput && lineStart == received.count }

    /// Nothing runs and nothing waits: somebody else may have its place.
    var isIdle: Bool { tasks.isEmpty && !hasOutput && !hasMoreLines && !isDeferred }

    /// When the client is to be closed, unless something happens before.
    var due: ContinuousClock.Instant? {
        [lingersUntil, hasOutput ? lastTaken + limits.readTime : nil, lineBegan.map { $0 + limits.lineTime }]
            .compactMap(\.self).min()
    }

    var doesNotRead: Bool { hasOutput && lastTaken + limits.readTime <= .now }
    var doesNotEndLine: Bool { lingersUntil == nil && lineBegan.map { $0 + limits.lineTime <= .now } ?? false }

    // Lines

    /// Reads what is there; false where the connection broke.
    func receive(_ chunk: UnsafeMutableRawBufferPointer) -> Bool {
        let count = recv(descriptor, chunk.baseAddress, chunk.count, Int32(MSG_DONTWAIT))
        if count < 0 { return errno == EAGAIN || errno == EINTR }
        if count == 0 { hasEnded = true }
        lastActivity = .now
        if lingersUntil == nil { received += chunk[..<count] }
        return true
    }

    enum Line {
        /// With so many bytes, without its end.
        case whole(Int)
        case tooLong
        case none
    }

    /// Looks for the end of the next line. The last one needs none.
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

    /// Takes the line that was found.
    func takeLine() -> [UInt8] {
        defer { searched = lineStart }
        if lineStart == 0, searched + 1 >= received.count {
            // The usual case, and that of long lines: nothing is copied.
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

    /// Sends a line, which is in the load already.
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

    /// Writes as much as the client takes, and a bounded amount at a time; false where the connection broke.
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

    /// Ends the conversation once what is pending has been written.
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
