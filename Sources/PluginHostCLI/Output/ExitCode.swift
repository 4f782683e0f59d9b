internal import PluginABI

/// How the program ends: the numbers of `sysexits.h`.
enum ExitCode: Int32, Sendable {
    case success = 0
    /// The command line cannot be understood.
    case usage = 64
    /// A file, a URL or a parameter is not as it must be.
    case badData = 65
    /// A file that was named cannot be read.
    case noInput = 66
    /// What was asked for is not there, or no host answers.
    case unavailable = 69
    /// An action failed, or the host did.
    case failed = 70
    /// The system gives no more threads, memory or memory maps.
    case outOfResources = 71
    /// The socket, or a new package, cannot be made.
    case cannotCreate = 73
    /// The output cannot be written.
    case cannotWrite = 74
    /// The deadline passed, or the call was cancelled.
    case tryAgain = 75
    /// The host refused.
    case refused = 77
    /// The configuration cannot be used.
    case badConfiguration = 78
}

extension ExitCode {
    /// The code of an error. Codes that a module brings are its own and mean that its action failed.
    init(_ error: PluginError) {
        self =
            switch error.code {
            case _ where error.source != nil: .failed
            case .usage: .usage
            case .invalidURL, .invalidPattern, .missingParameter, .unknownParameter, .mistypedParameter, .invalidValue,
                .invalidFile, .openFailed, .invalidDescription, .incompatible, .invalidManifest, .inspectionCrashed,
                .inspectionTimedOut, .checkFailed:
                .badData
            case .fileNotFound, .unreadable: .noInput
            case .unknownTarget, .unknownService, .unknownModule, .moduleUnavailable, .noVersionKept, .unknownAction,
                .unknownObject, .hostStopped, .quarantined, .cannotAttach:
                .unavailable
            case .outOfResources: .outOfResources
            case .cannotListen, .cannotCreate: .cannotCreate
            case .deadlineExceeded, .cancelled, .overloaded: .tryAgain
            case .notRemote, .refused, .required, .interceptorMissing, .pageRefused, .untrusted: .refused
            case .invalidConfiguration: .badConfiguration
            default: .failed
            }
    }
}
