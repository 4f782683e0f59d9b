internal import Glibc

/// One client of the control socket: its lines, its answers, and what it waits for. Only the server's thread uses it.
final class ControlConnection {
    let descriptor: CInt
    private let limits: ControlServer.Limits
    /// What runs for this client, by number.
    var tasks: [Int: Task<Void, Never>] = [:]
    /// The client will send no more.
    private(set) var hasEnded = false
    /// No more is read or answered; the client has until then to take what was written.
    private(set) var lingersUntil: ContinuousClock.Instant?

    private var received: [UInt8] = []
    /// Where the next line begins, and how far the search for its end has come.
    private var lineStart = 0
    private var searched = 0
    private var pending: [UInt8] = []
    private var sent = 0

    init(descriptor: CInt, limits: ControlServer.Limits) {
        self.descriptor = descriptor
        self.limits = limits
    }

    var hasOutput: Bool { sent < pending.count }

    /// Another line may be begun: not too many run, and the client takes its answers.
    var takesLines: Bool {
        lingersUntil == nil && tasks.count < limits.requestsInFlight && pending.count - sent < limits.pendingBytes
    }

    var wantsInput: Bool { !hasEnded && (takesLines || lingersUntil != nil) }

    /// Nothing is left to do.
    var isFinished: Bool { hasEnded && tasks.isEmpty && !hasOutput && lineStart == received.count }

    /// Reads what is there; false where the connection broke.
    func receive() -> Bool {
        var chunk = [UInt8](repeating: 0, count: 64 << 10)
        let count = recv(descriptor, &chunk, chunk.count, Int32(MSG_DONTWAIT))
        if count < 0 { return errno == EAGAIN || errno == EINTR }
        if count == 0 { hasEnded = true }
        if lingersUntil == nil { received += chunk[..<count] }
        return true
    }

    enum Line {
        case whole([UInt8])
        case tooLong
        case none
    }

    /// The next line, without its end. The last one needs none.
    func nextLine() -> Line {
        let end = received[searched...].firstIndex(of: UInt8(ascii: "\n"))
        searched = end ?? received.count
        if searched - lineStart > limits.lineBytes { return .tooLong }
        guard end != nil || hasEnded && searched > lineStart else { return .none }
        let line = Array(received[lineStart..<searched])
        lineStart = min(searched + 1, received.count)
        searched = lineStart
        if lineStart == received.count || lineStart > 1 << 20 {
            received.removeFirst(lineStart)
            lineStart = 0
            searched = 0
        }
        return .whole(line)
    }

    func send(_ line: String) {
        guard lingersUntil == nil else { return }
        pending += line.utf8
        pending.append(UInt8(ascii: "\n"))
    }

    /// Writes as much as the client takes; false where the connection broke.
    func flush() -> Bool {
        while hasOutput {
            let count = pending.withUnsafeBytes { bytes in
                Glibc.send(
                    descriptor, bytes.baseAddress! + sent, bytes.count - sent,
                    Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
            }
            if count < 0 { return errno == EAGAIN || errno == EINTR }
            sent += count
        }
        pending.removeAll(keepingCapacity: pending.capacity < 1 << 20)
        sent = 0
        if lingersUntil != nil { shutdown(descriptor, Int32(SHUT_WR)) }
        return true
    }

    /// Ends the conversation once what is pending has been written.
    func linger() {
        lingersUntil = .now + limits.linger
        received = []
        lineStart = 0
        searched = 0
    }

    func close() {
        for task in tasks.values { task.cancel() }
        Glibc.close(descriptor)
    }
}
