internal import PluginABI

/// The exit codes of the program, which are those of `sysexits.h`.
enum ExitCode: Int32, Sendable, CaseIterable {
    case success = 0
    /// The command line cannot be understood.
    case usage = 64
    /// A file, a URL or a parameter is not valid.
    case badData = 65
    /// A file cannot be read.
    case noInput = 66
    /// A target, service, action or module does not exist, or no host answers.
    case unavailable = 69
    /// An action or the host failed.
    case failed = 70
    /// The system is out of threads, memory or memory maps.
    case outOfResources = 71
    /// The socket, a new package or a man page cannot be created.
    case cannotCreate = 73
    /// The output cannot be written.
    case cannotWrite = 74
    /// The deadline passed, or the call was cancelled.
    case tryAgain = 75
    /// The host refused.
    case refused = 77
    /// The configuration cannot be used.
    case badConfiguration = 78

    /// The meaning, for the man page.
    var meaning: String {
        switch self {
        case .success: "Success."
        case .usage: "The command line cannot be understood."
        case .badData: "A file, a URL or a parameter is not valid."
        case .noInput: "A file cannot be read."
        case .unavailable: "A target, service, action or module does not exist, or no host answers."
        case .failed: "An action or the host failed."
        case .outOfResources: "The system is out of threads, memory or memory maps."
        case .cannotCreate: "The socket, a new package or a man page cannot be created."
        case .cannotWrite: "The output cannot be written."
        case .tryAgain: "The deadline passed, or the call was cancelled."
        case .refused: "The host refused."
        case .badConfiguration: "The configuration cannot be used."
        }
    }

    /// Makes the exit code for an error. An error code of a module means that its action failed, even if the host has
    /// the same code.
    init(_ error: PluginError) {
        self =
            switch error.code {
            case _ where error.source != nil: .failed
            case .usage: .usage
            case .invalidURL, .invalidPattern, .missingParameter, .unknownParameter, .mistypedParameter, .invalidValue,
                .invalidFile, .openFailed, .invalidDescription, .incompatible, .invalidManifest, .sealMismatch,
                .inspectionCrashed, .inspectionTimedOut, .checkFailed:
                .badData
            case .fileNotFound, .unreadable: .noInput
            case .unknownTarget, .unknownService, .unknownModule, .moduleUnavailable, .noVersionKept, .unknownAction,
                .unknownObject, .noRoute, .methodNotAllowed, .hostStopped, .quarantined, .cannotAttach:
                .unavailable
            case .outOfResources: .outOfResources
            case .cannotListen, .cannotCreate: .cannotCreate
            case .deadlineExceeded, .cancelled, .overloaded: .tryAgain
            case .notRemote, .refused, .required, .interceptorMissing, .pageRefused, .untrusted,
                .asynchronousGuard:
                .refused
            case .invalidConfiguration: .badConfiguration
            default: .failed
            }
    }
}
