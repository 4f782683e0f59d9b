internal import PluginABI

// The codes that this program adds to those of the host.
extension PluginError.Code {
    /// The command line cannot be understood.
    static let usage: Self = "usage"
    /// A file that was named on the command line does not exist.
    static let fileNotFound: Self = "fileNotFound"
    /// A file or folder already exists, or cannot be written.
    static let cannotCreate: Self = "cannotCreate"
    /// The control socket cannot be created.
    static let cannotListen: Self = "cannotListen"
    /// No host answers on the socket.
    static let cannotAttach: Self = "cannotAttach"
    /// A process cannot be started.
    static let processFailed: Self = "processFailed"
    /// The process that inspected the file died.
    static let inspectionCrashed: Self = "inspectionCrashed"
    /// The process that inspected the file did not end in time.
    static let inspectionTimedOut: Self = "inspectionTimedOut"
    /// A module has failed a check. The findings were printed.
    static let checkFailed: Self = "checkFailed"
}

extension PluginError {
    /// Makes the error for a command line that cannot be understood.
    static func usage(_ message: String) -> PluginError { PluginError(.usage, message) }
}
