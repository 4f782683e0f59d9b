internal import Glibc
internal import PluginABI
internal import PluginFile

/// The socket on which `run` listens, and which other commands try first, if none is named.
enum DefaultSocket {
    static let variable = "PLUGINHOST_SOCKET"

    /// Returns the path of the socket: that of `PLUGINHOST_SOCKET`, or `pluginhost.sock` in `XDG_RUNTIME_DIR`. `nil` if
    /// neither variable has a usable value, or `PLUGINHOST_SOCKET` is empty.
    static func path(_ environment: [String: String]) -> String? {
        if let path = environment[variable] { return path.isEmpty ? nil : path }
        guard let folder = environment["XDG_RUNTIME_DIR"], folder.hasPrefix("/") else { return nil }
        return "\(folder)/pluginhost.sock"
    }

    /// How long a command waits for the first answer of a host that was not named.
    static let patience = Duration.seconds(5)

    /// Returns the host that listens there; `nil` if there is none.
    ///
    /// - Parameter advice: What the command can do without this host, for the error message.
    /// - Throws: `untrusted` if it belongs to another user; `deadlineExceeded` if it does not answer.
    static func host(_ environment: [String: String], advice: String) throws(PluginError) -> AttachedHost? {
        guard let path = path(environment) else { return nil }
        do throws(PluginError) { return try AttachedHost(path: path, probe: patience) } catch {
            switch error.code {
            case .cannotAttach: return nil
            case .deadlineExceeded:
                throw PluginError(
                    error.code,
                    "\(error.message) Wait for it with '\(OptionSpecification.attach.name) \(path)'\(advice).")
            default: throw error
            }
        }
    }
}
