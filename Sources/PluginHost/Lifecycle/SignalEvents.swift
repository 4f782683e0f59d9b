import Dispatch
import Glibc
import Synchronization

extension PluginHost {
    /// Posts `host.suspended` when the program is asked to stop for a while (SIGTSTP, Ctrl-Z), then lets it be stopped,
    /// and posts `host.resumed` when it goes on (SIGCONT). For programs: the library handles no signals unless asked.
    ///
    /// - Returns: What ends it when it is cancelled or dropped.
    public func installSignalEvents() -> SignalEvents { SignalEvents(self) }
}

/// The events `host.suspended` and `host.resumed`, for as long as it lives.
public final class SignalEvents: Sendable {
    // Set once in `init`; a source may be used from any thread.
    private nonisolated(unsafe) let sources: [any DispatchSourceSignal]

    init(_ host: PluginHost) {
        let queue = DispatchQueue(label: "pluginhost.suspension")
        let registration = DispatchGroup()
        sources = [SIGTSTP, SIGCONT].map { number in
            registration.enter()
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler { [weak host] in
                if number == SIGCONT {
                    host?.dispatcher.postHostEvent("host.resumed")
                } else {
                    host?.dispatcher.postHostEvent(
                        "host.suspended", waitingAtMost: host?.configuration.shutdownTimeout)
                    kill(getpid(), SIGSTOP)
                }
            }
            source.setRegistrationHandler { registration.leave() }
            source.resume()
            return source
        }
        registration.wait()
    }

    /// Ends the events; the signals do again what they did before.
    public func cancel() { for source in sources { source.cancel() } }

    deinit { cancel() }
}
