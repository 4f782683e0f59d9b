internal import CPluginHost
internal import Glibc
internal import PluginABI
internal import PluginHost

/// The wish that the program ends: by SIGINT, by SIGTERM, or at the prompt.
///
/// A second signal ends it at once, whatever hangs; so does a thread that was made for that, when the orderly end has not
/// begun within ``patience``.
struct StopRequest: Sendable {
    /// How many seconds after a signal the end must have begun.
    static let patience: UInt32 = 5

    /// Returns when signals are taken note of; until then they end the program as usual.
    ///
    /// - Throws: `outOfResources` where no thread can be had.
    init() throws(PluginError) {
        let code = plugin_host_stop_install(Self.patience)
        guard code == 0 else {
            throw PluginError(
                .outOfResources,
                "No thread can be had that ends the program when a signal asks for it: \(String(cString: strerror(code))). "
                    + ProcessLimits.ofThreads)
        }
    }

    func stop() { plugin_host_stop_ask() }

    /// Takes the signals again that a module has taken from the program.
    ///
    /// - Returns: Their names.
    static func takeBack() -> [String] {
        let taken = plugin_host_stop_take_back()
        return [(1, "SIGINT"), (2, "SIGTERM")].filter { taken & $0.0 != 0 }.map(\.1)
    }

    /// Blocks this thread until somebody wants the program to end.
    func wait() { plugin_host_stop_wait() }

    /// Tells that the orderly end has begun.
    func hasBegun() { plugin_host_stop_begun() }
}
