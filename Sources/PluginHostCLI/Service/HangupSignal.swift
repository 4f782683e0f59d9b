internal import CPluginHost
internal import Glibc
internal import PluginABI
internal import PluginHost

/// Receives SIGHUP for a program without a controlling terminal.
final class HangupSignal: Sendable {
    /// Whether SIGHUP is a request to reload: not if it is ignored, nor if it means that the terminal has gone.
    static var asksToReload: Bool { plugin_host_hangup() == CInt(PLUGIN_HOST_HANGUP_OF_SERVICE) }

    /// The address of the inbox, which is never freed.
    private let inbox: UInt

    /// Receives the signal from now on. Returns `nil` if no more signals can be received.
    init?() {
        guard let inbox = plugin_host_inbox_open([SIGHUP], 1) else { return nil }
        self.inbox = UInt(bitPattern: inbox)
    }

    /// Calls a function at each signal, on a thread of its own, including the signals that have already arrived. If no
    /// thread can be created, the previous effect of the signal is restored.
    func begin(_ reload: @escaping @Sendable () -> Void) {
        let address = inbox
        do throws(PluginError) {
            try DetachedThread.start("host.reload") {
                // The pointer stays valid: an inbox is never freed.
                let inbox = OpaquePointer(bitPattern: address)!
                while plugin_host_inbox_wait(inbox) != 0 { reload() }
            }
        } catch {
            cancel()
        }
    }

    /// Restores the previous effect of the signal.
    func cancel() { plugin_host_inbox_close(OpaquePointer(bitPattern: inbox)!) }
}
