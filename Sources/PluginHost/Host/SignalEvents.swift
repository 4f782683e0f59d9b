import CPluginHost
import Glibc
import PluginABI
import Synchronization

extension PluginHost {
    /// Posts `host.suspended` when the program is asked to suspend (SIGTSTP, Ctrl-Z), then suspends it, and posts
    /// `host.resumed` when it continues (SIGCONT). For programs: the library handles no signals unless asked to.
    ///
    /// A separate thread waits for the signals. If the thread cannot be created, the error is logged, and the events
    /// are not posted.
    ///
    /// - Returns: An object that stops posting the events when it is cancelled or deinitialized.
    public func installSignalEvents() -> SignalEvents { SignalEvents(self) }
}

/// The events `host.suspended` and `host.resumed`, for the lifetime of this object.
public final class SignalEvents: Sendable {
    /// The address of the signal inbox, which is never freed; `nil` after ``cancel()``.
    private let inbox: Mutex<UInt?>

    init(_ host: PluginHost) {
        guard let inbox = plugin_host_inbox_open([SIGTSTP, SIGCONT], 2) else {
            self.inbox = Mutex(nil)
            host.configuration.log(
                LogEntry(
                    level: .warning,
                    message: "16 hosts already handle SIGTSTP and SIGCONT: this host posts no events for them."))
            return
        }
        let address = UInt(bitPattern: inbox)
        self.inbox = Mutex(address)
        do throws(PluginError) {
            try DetachedThread.start("host.suspension") { [weak host] in
                // The pointer stays valid: an inbox is never freed.
                let inbox = OpaquePointer(bitPattern: address)!
                while case let number = plugin_host_inbox_wait(inbox), number != 0 {
                    if number == SIGCONT {
                        host?.calls.postHostEvent("host.resumed")
                    } else {
                        host?.calls.postHostEvent(
                            "host.suspended", waitingAtMost: host?.configuration.shutdownTimeout)
                        kill(getpid(), SIGSTOP)
                    }
                }
            }
        } catch {
            cancel()
            host.configuration.log(LogEntry(level: .warning, message: error.message))
        }
    }

    /// Stops posting the events; the signals have their previous effect again.
    public func cancel() {
        let address = inbox.withLock { $0.take() }
        if let address { plugin_host_inbox_close(OpaquePointer(bitPattern: address)) }
    }

    deinit { cancel() }
}
