import CPluginHost
import Glibc
import PluginABI
import Synchronization

extension PluginHost {
    /// Posts `host.suspended` when the program is asked to stop for a while (SIGTSTP, Ctrl-Z), then lets it be stopped,
    /// and posts `host.resumed` when it goes on (SIGCONT). For programs: the library handles no signals unless asked.
    ///
    /// The signals are waited for on a thread of their own. Where none can be had, the log says so, and there are no such
    /// events.
    ///
    /// - Returns: What ends it when it is cancelled or dropped.
    public func installSignalEvents() -> SignalEvents { SignalEvents(self) }
}

/// The events `host.suspended` and `host.resumed`, for as long as it lives.
public final class SignalEvents: Sendable {
    /// Nil after the end. It points to what is never freed.
    private let inbox: Mutex<UInt?>

    init(_ host: PluginHost) {
        guard let inbox = plugin_host_inbox_open([SIGTSTP, SIGCONT], 2) else {
            self.inbox = Mutex(nil)
            host.configuration.log(
                LogEntry(level: .warning, message: "SIGTSTP and SIGCONT are taken by 16 hosts already: no events come.")
            )
            return
        }
        let address = UInt(bitPattern: inbox)
        self.inbox = Mutex(address)
        do throws(PluginError) {
            try DetachedThread.start("host.suspension") { [weak host] in
                // Sound: an inbox is never freed.
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

    /// Ends the events; the signals do again what they did before.
    public func cancel() {
        let address = inbox.withLock { $0.take() }
        if let address { plugin_host_inbox_close(OpaquePointer(bitPattern: address)) }
    }

    deinit { cancel() }
}
