internal import CPluginHost
internal import Glibc
internal import PluginABI
internal import PluginHost

/// Calls a function at each SIGHUP, on a thread of its own, for a program without a controlling terminal.
final class HangupSignal: Sendable {
    /// Whether SIGHUP is a request to reload: not if it is ignored, nor if it means that the terminal has gone.
    static var asksToReload: Bool { plugin_host_hangup() == CInt(PLUGIN_HOST_HANGUP_OF_SERVICE) }

    /// The address of the inbox, which is never freed.
    private let inbox: UInt

    /// Returns `nil` if no more signals can be received.
    init?(_ reload: @escaping @Sendable () -> Void) {
        guard let inbox = plugin_host_inbox_open([SIGHUP], 1) else { return nil }
        let address = UInt(bitPattern: inbox)
        self.inbox = address
        do throws(PluginError) {
            try DetachedThread.start("host.reload") {
                // The pointer stays valid: an inbox is never freed.
                let inbox = OpaquePointer(bitPattern: address)!
                while plugin_host_inbox_wait(inbox) != 0 { reload() }
            }
        } catch {
            plugin_host_inbox_close(inbox)
            return nil
        }
    }

    /// Restores the previous effect of the signal.
    func cancel() { plugin_host_inbox_close(OpaquePointer(bitPattern: inbox)!) }
}
