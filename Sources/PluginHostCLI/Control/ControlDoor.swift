internal import Glibc
internal import PluginABI
internal import PluginHost

/// Accepts clients of the control socket, or refuses them with the reason.
final class ControlDoor {
    private let listener: ListeningSocket
    private let log: @Sendable (LogEntry) -> Void
    /// A spare descriptor. If no other descriptor is free, this one is closed in order to accept a client and send it
    /// the reason for the refusal.
    private var spare: CInt = open("/dev/null", O_RDONLY | O_CLOEXEC)
    /// The time when accepting is tried again after a failure.
    private(set) var opensAgainAt: ContinuousClock.Instant?
    /// The times of the last log entries, by topic.
    private var told: [String: ContinuousClock.Instant] = [:]

    init(listener: ListeningSocket, log: @escaping @Sendable (LogEntry) -> Void) {
        (self.listener, self.log) = (listener, log)
    }

    /// The descriptor to wait for; -1 while no client can be accepted.
    var descriptor: CInt { opensAgainAt.map { $0 > .now } ?? false ? -1 : listener.descriptor }

    /// Accepts the next client, which must belong to this user or to root. Returns `nil` if there is none.
    ///
    /// - Parameter makeRoom: Called if no descriptor is left. It closes a client, and returns whether it has closed
    ///   one.
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

    /// Sends a client the reason why it cannot be served, and closes the connection.
    func turnAway(_ descriptor: CInt, _ message: String) {
        var line = RPCError.overloaded(message).response(id: .null).json + "\n"
        line.withUTF8 { _ = send(descriptor, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)) }
        Glibc.close(descriptor)
    }

    /// Logs a message, unless one about the same topic was logged within the last minute.
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
