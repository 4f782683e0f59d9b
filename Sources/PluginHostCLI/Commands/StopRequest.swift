internal import CPluginHost
internal import Glibc
internal import PluginABI
internal import PluginHost

/// The request to end the program: by SIGINT, by SIGTERM, by the end of the terminal (SIGHUP), or at the
/// prompt.
///
/// A second signal ends the program immediately, even if something hangs. A separate thread does the same if the
/// shutdown has not begun within ``patience`` of the first signal.
struct StopRequest: Sendable {
    /// The usual number of seconds after a signal within which the shutdown must have begun.
    static let patience: UInt32 = 5

    /// Installs the signal handlers. Until then, signals end the program as usual.
    ///
    /// - Parameter patience: How long after the first signal the shutdown must have begun, rounded up to whole seconds.
    ///   Default: ``patience``.
    /// - Throws: `outOfResources` if no thread can be created.
    init(patience: Duration? = nil) throws(PluginError) {
        let seconds = patience.map { UInt32(($0 / .seconds(1)).rounded(.up)) } ?? Self.patience
        let code = plugin_host_stop_install(seconds)
        guard code == 0 else {
            throw PluginError(
                .outOfResources,
                "The thread that ends the program at a signal cannot be created: \(String(cString: strerror(code))). "
                    + ProcessLimits.ofThreads)
        }
    }

    func stop() { plugin_host_stop_ask() }

    /// Installs the program's signal handlers again where a module has replaced them.
    ///
    /// - Returns: The names of these signals.
    static func takeBack() -> [String] {
        let taken = plugin_host_stop_take_back()
        return [(1, "SIGINT"), (2, "SIGTERM"), (4, "SIGHUP")].filter { taken & $0.0 != 0 }.map(\.1)
    }

    /// Blocks this thread until the end of the program is requested.
    func wait() { plugin_host_stop_wait() }

    /// Reports that the shutdown has begun.
    func hasBegun() { plugin_host_stop_begun() }
}
