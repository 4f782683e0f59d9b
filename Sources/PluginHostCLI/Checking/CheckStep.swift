internal import PluginABI

/// A check for which code of the module runs: each in a process of its own.
enum CheckStep: String, CaseIterable, Codable, Sendable {
    /// It is activated and torn down again and again.
    case lifecycle
    /// Actions and targets that it does not have; a `notFound` takes their place.
    case unknown
    /// Missing, superfluous and mistyped parameters.
    case parameters
    /// Values of the right type that nobody expects.
    case hostile
    /// All actions on several threads at once.
    case concurrent
    /// Each call is answered once, with what the manifest declares.
    case replies
    /// Objects go when nobody holds them.
    case objects

    /// Whether it performs actions.
    var callsActions: Bool { self != .lifecycle }

    /// How long one asynchronous call may take, of the time that the whole step has.
    func callTimeout(of deadline: Duration) -> Duration {
        switch self {
        // With such parameters an action may sleep for a year.
        case .parameters, .hostile: .milliseconds(200)
        // It performs everything several times.
        case .objects: deadline / 16
        case .lifecycle, .unknown, .concurrent, .replies: deadline / 4
        }
    }

    /// What to do when the process died or hung in this step.
    var advice: String {
        switch self {
        case .lifecycle: "Look at activate and at the hooks; a module is activated once in each of its copies."
        case .unknown: "A 'notFound' must take every name."
        case .parameters: "Parameters of type 'any' can hold everything, null included: look before you read."
        case .hostile: "Numbers can be as large, texts as long and bytes as few as their types allow."
        case .concurrent:
            "Actions run on several threads at once: guard what they share, or declare \"concurrency\": \"serial\"."
        case .replies: "Each call must be answered, also a failing one."
        case .objects: "An object's 'destroy' is called once, from whatever thread."
        }
    }
}
