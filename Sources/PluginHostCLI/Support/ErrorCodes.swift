internal import PluginABI

// The codes that this program adds to those of the host.
extension PluginError.Code {
    /// The command line cannot be understood.
    static let usage: Self = "usage"
    /// A file that was named on the command line does not exist.
    static let fileNotFound: Self = "fileNotFound"
    /// Something is there already, or cannot be written.
    static let cannotCreate: Self = "cannotCreate"
    /// The control socket cannot be made.
    static let cannotListen: Self = "cannotListen"
    /// No host answers on the socket.
    static let cannotAttach: Self = "cannotAttach"
    /// No process can be started.
    static let processFailed: Self = "processFailed"
    /// The process that looked at the file died.
    static let inspectionCrashed: Self = "inspectionCrashed"
    /// The process that looked at the file came to no end.
    static let inspectionTimedOut: Self = "inspectionTimedOut"
    /// A module does not do what it must; what that is was printed.
    static let checkFailed: Self = "checkFailed"
}

extension PluginError {
    /// The command line cannot be understood.
    static func usage(_ message: String) -> PluginError { PluginError(.usage, message) }
}
