/// A check that runs code of the module, in a process of its own.
enum CheckStep: String, CaseIterable, Codable, Sendable {
    /// Activates the module and tears it down, repeatedly.
    case lifecycle
    /// Calls actions and targets that the module does not have; a `notFound` may handle these calls.
    case unknown
    /// Passes missing, superfluous and mistyped parameters.
    case parameters
    /// Passes unusual values of the right types.
    case hostile
    /// Performs all actions on several threads at once.
    case concurrent
    /// Verifies that each call gets one reply, with a value of the declared type.
    case replies
    /// Verifies that objects are destroyed when they have no holders.
    case objects
    /// Takes arguments away when the action has returned.
    case arguments
    /// Replaces the module with a copy of itself.
    case replacement

    /// Whether the step performs actions.
    var callsActions: Bool { self != .lifecycle }

    /// Returns how long one asynchronous call may take if the whole step may take `deadline`.
    func callTimeout(of deadline: Duration) -> Duration {
        switch self {
        // With such parameters, an action may sleep for a year.
        case .parameters, .hostile: .milliseconds(200)
        // This step performs every action several times.
        case .objects: deadline / 16
        case .lifecycle, .unknown, .concurrent, .replies, .arguments: deadline / 4
        case .replacement: deadline / 16
        }
    }

    /// Returns the advice if the process died in this step.
    ///
    /// - Parameter call: What the module was doing; `nil` if it is unknown.
    func advice(onCrashDuring call: String?) -> String {
        switch self {
        case .lifecycle: advice
        case .replies: ""
        // Only such a call is known to involve other threads.
        case .concurrent: call?.contains("threads at once") == true ? advice : ""
        default: call == nil ? "" : advice
        }
    }

    /// The advice if the process hung in this step.
    var advice: String {
        switch self {
        case .lifecycle: "Look at activate and at the hooks; a module is activated once in each of its copies."
        case .unknown: "A 'notFound' must accept every name."
        case .parameters: "Parameters of type 'any' can be of any type, including null: check the type before reading."
        case .hostile: "Numbers, strings and bytes can have any value and any length that their types allow."
        case .concurrent:
            "Actions run on several threads at once: guard what they share, or declare \"concurrency\": \"serial\"."
        case .replies: "Answer every call, even one that fails."
        case .arguments:
            "Arguments are borrowed until the action returns: copy what it needs later, or replies with later."
        case .replacement:
            "Old and new copy of a module run side by side for a while: look at setUp, activate and the hooks for "
                + "replacement, and at what both copies use."
        case .objects: "An object's 'destroy' is called once, on any thread."
        }
    }
}
