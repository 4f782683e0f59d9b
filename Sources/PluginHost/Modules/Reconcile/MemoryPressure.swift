import FoundationEssentials
import Glibc
import PluginABI
import Synchronization

/// A wait for the kernel to report that memory is short, by a trigger on its pressure stall information
/// (`Documentation/accounting/psi.rst` of Linux).
final class MemoryPressure: Sendable {
    /// The write end of a pipe. Closing it ends the wait.
    private let end: Mutex<Int32>

    /// Starts waiting on a thread of its own.
    ///
    /// - Parameters:
    ///   - handler: Called on that thread, at most once in two seconds, when tasks have waited for memory for 150 ms of
    ///     these two seconds. Receives the percentage of the last ten seconds during which some task waited.
    /// - Throws: `unreadable` if the kernel has no pressure stall information, or does not let this user set triggers;
    ///   `outOfResources` if no thread can be started.
    init(path: String = "/proc/pressure/memory", _ handler: @escaping @Sendable (_ share: Double?) -> Void)
        throws(PluginError)
    {
        let descriptor = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw PluginError(.unreadable, "\(path) cannot be opened: \(String(cString: strerror(errno))).")
        }
        // Without privileges, the window must be a multiple of two seconds.
        let trigger = "some 150000 2000000"
        guard write(descriptor, trigger, trigger.utf8.count + 1) >= 0 else {
            let reason = String(cString: strerror(errno))
            close(descriptor)
            throw PluginError(.unreadable, "\(path) does not accept a trigger: \(reason).")
        }
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            close(descriptor)
            throw PluginError(.unreadable, "There are no descriptors left to wait for memory pressure.")
        }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        end = Mutex(ends[1])
        do throws(PluginError) {
            try DetachedThread.start("pluginhost.psi") { [reading = ends[0]] in
                Self.wait(descriptor, reading) { handler(Self.share(path)) }
                close(descriptor)
                close(reading)
            }
        } catch {
            for end in [descriptor] + ends { close(end) }
            end.withLock { $0 = -1 }
            throw error
        }
    }

    /// Ends the wait.
    func stop() {
        end.withLock { end in
            if end >= 0 { close(end) }
            end = -1
        }
    }

    deinit { stop() }

    private static func wait(_ descriptor: Int32, _ end: Int32, _ handler: () -> Void) {
        while true {
            var polled = [
                pollfd(fd: descriptor, events: Int16(POLLPRI), revents: 0),
                pollfd(fd: end, events: Int16(POLLIN), revents: 0),
            ]
            let count = poll(&polled, 2, -1)
            if count < 0, errno == EINTR { continue }
            guard count > 0, polled[1].revents == 0, polled[0].revents & Int16(POLLERR) == 0 else { return }
            if polled[0].revents & Int16(POLLPRI) != 0 { handler() }
        }
    }

    /// Returns `avg10` of the line that begins with `some`.
    static func share(_ path: String) -> Double? {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return nil }
        return text.split(separator: "\n").first { $0.hasPrefix("some ") }?
            .split(separator: " ").first { $0.hasPrefix("avg10=") }
            .flatMap { Double($0.dropFirst("avg10=".count)) }
    }
}

/// A watch for memory pressure that begins with the first subscription to `host.memoryPressure`. All functions may be
/// called from any thread.
final class MemoryWatch: Sendable {
    private enum State {
        case notYet
        /// `nil` if the kernel does not support or allow it.
        case watching(MemoryPressure?)
        case ended
    }

    private let calls: Calls
    private let state = Mutex(State.notYet)

    init(_ calls: Calls) { self.calls = calls }

    var isWatching: Bool { state.withLock { if case .watching(_?) = $0 { true } else { false } } }

    func beginIfAwaited() {
        guard calls.hasSubscribers("host.memoryPressure") else { return }
        let failure = state.withLock { state -> PluginError? in
            guard case .notYet = state else { return nil }
            do throws(PluginError) {
                let pressure = try MemoryPressure { [calls] share in
                    calls.postHostEvent("host.memoryPressure", ["share": share.map(Value.double) ?? .null])
                }
                state = .watching(pressure)
                return nil
            } catch {
                state = .watching(nil)
                return error
            }
        }
        guard let failure else { return }
        calls.settings.log(
            LogEntry(level: .debug, message: "host.memoryPressure will not be posted: \(failure.message)"))
    }

    func end() {
        state.withLock { state in
            if case .watching(let pressure?) = state { pressure.stop() }
            state = .ended
        }
    }
}
