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
        self = error.source == nil ? Self.table[error.code] ?? .failed : .failed
    }

    private static let table: [PluginError.Code: ExitCode] = [
        .usage: .usage,

        .invalidURL: .badData,
        .invalidPattern: .badData,
        .missingParameter: .badData,
        .unknownParameter: .badData,
        .mistypedParameter: .badData,
        .invalidValue: .badData,
        .invalidFile: .badData,
        .openFailed: .badData,
        .invalidDescription: .badData,
        .incompatible: .badData,
        .invalidManifest: .badData,
        .inspectionCrashed: .badData,
        .inspectionTimedOut: .badData,
        .checkFailed: .badData,

        .fileNotFound: .noInput,
        .unreadable: .noInput,

        .unknownTarget: .unavailable,
        .unknownService: .unavailable,
        .unknownModule: .unavailable,
        .moduleUnavailable: .unavailable,
        .noVersionKept: .unavailable,
        .unknownAction: .unavailable,
        .unknownObject: .unavailable,
        .hostStopped: .unavailable,
        .quarantined: .unavailable,
        .cannotAttach: .unavailable,

        .outOfResources: .outOfResources,

        .cannotListen: .cannotCreate,
        .cannotCreate: .cannotCreate,

        .deadlineExceeded: .tryAgain,
        .cancelled: .tryAgain,
        .overloaded: .tryAgain,

        .notRemote: .refused,
        .refused: .refused,
        .required: .refused,
        .interceptorMissing: .refused,
        .pageRefused: .refused,
        .untrusted: .refused,

        .invalidConfiguration: .badConfiguration,
    ]
}
