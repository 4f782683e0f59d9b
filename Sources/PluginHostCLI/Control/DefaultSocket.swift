internal import Glibc
internal import PluginABI
internal import PluginFile

/// The socket on which `run` listens, and that other commands try first, if none is named.
enum DefaultSocket {
    static let variable = "PLUGINHOST_SOCKET"

    /// Returns its path: that of `PLUGINHOST_SOCKET`, or `pluginhost.sock` in `XDG_RUNTIME_DIR`. `nil` if neither
    /// variable has a usable value, or `PLUGINHOST_SOCKET` is empty.
    static func path(_ environment: [String: String]) -> String? {
        if let path = environment[variable] { return path.isEmpty ? nil : path }
        guard let folder = environment["XDG_RUNTIME_DIR"], folder.hasPrefix("/") else { return nil }
        return "\(folder)/pluginhost.sock"
    }

    /// Returns the host that listens there; `nil` if there is none.
    ///
    /// - Throws: `untrusted` if it belongs to another user.
    static func host(_ environment: [String: String]) throws(PluginError) -> AttachedHost? {
        guard let path = path(environment) else { return nil }
        do throws(PluginError) { return try AttachedHost(path: path) } catch {
            guard error.code == .cannotAttach else { throw error }
            return nil
        }
    }
}
