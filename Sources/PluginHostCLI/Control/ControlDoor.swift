internal import Glibc
internal import PluginABI
internal import PluginHost

/// Where clients of the control socket come in, or are told why they cannot.
final class ControlDoor {
    private let listener: ListeningSocket
    private let log: @Sendable (LogEntry) -> Void
    /// Kept open for the moment in which there is no other: it is closed to accept a client, who is told.
    private var spare: CInt = open("/dev/null", O_RDONLY | O_CLOEXEC)
    /// Accepting failed, and is tried again then.
    private(set) var opensAgainAt: ContinuousClock.Instant?
    /// When something was last told, by what it is about.
    private var told: [String: ContinuousClock.Instant] = [:]

    init(listener: ListeningSocket, log: @escaping @Sendable (LogEntry) -> Void) {
        self.listener = listener
        self.log = log
    }

    /// What to wait at; -1 while nobody can be accepted.
    var descriptor: CInt { opensAgainAt.map { $0 > .now } ?? false ? -1 : listener.descriptor }

    /// The next client, of this user or of root.
    ///
    /// - Parameter makeRoom: Closes a client when there is no descriptor left, and returns whether it has.
    func accept(makeRoom: () -> Bool) -> CInt? {
        opensAgainAt = nil
        if spare < 0 { spare = open("/dev/null", O_RDONLY | O_CLOEXEC) }
        var descriptor = Glibc.accept(listener.descriptor, nil, nil)
        var code = errno
        if descriptor < 0, code == EMFILE || code == ENFILE, makeRoom() {
            descriptor = Glibc.accept(listener.descriptor, nil, nil)
            code = errno
        }
        guard descriptor >= 0 else {
            refuse(code)
            return nil
        }
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        guard UnixSocket.hasTrustedPeer(descriptor) else {
            Glibc.close(descriptor)
            return nil
        }
        return descriptor
    }

    private func refuse(_ code: CInt) {
        guard code != EAGAIN, code != EINTR, code != ECONNABORTED else { return }
        let reason = String(cString: strerror(code))
        tell(
            "The control socket cannot accept a client: \(reason). Raise the limit of open files (ulimit -n).",
            about: "accept", level: .warning)
        if code == EMFILE || code == ENFILE, spare >= 0 {
            Glibc.close(spare)
            let descriptor = Glibc.accept(listener.descriptor, nil, nil)
            if descriptor >= 0 {
                turnAway(descriptor, "The host cannot serve more clients: \(reason). Raise its limit (ulimit -n).")
            }
            spare = open("/dev/null", O_RDONLY | O_CLOEXEC)
            if descriptor >= 0 { return }
        }
        opensAgainAt = .now + .milliseconds(100)
    }

    /// Tells a client why it cannot be served, and closes it.
    func turnAway(_ descriptor: CInt, _ message: String) {
        var line = RPCError.overloaded(message).response(id: .null).json + "\n"
        line.withUTF8 { _ = send(descriptor, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)) }
        Glibc.close(descriptor)
    }

    /// Logs something, but what was logged within the last minute.
    func tell(_ message: String, about topic: String, level: LogLevel) {
        if let last = told[topic], last + .seconds(60) > .now { return }
        told[topic] = .now
        log(LogEntry(level: level, message: message))
    }

    func close() {
        listener.remove()
        if spare >= 0 { Glibc.close(spare) }
    }
}
