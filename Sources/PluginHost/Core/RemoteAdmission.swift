import PluginABI

/// The decision of the guard that a URL may be opened with a method, as long as it leads to the same subject.
struct RemoteAdmission: Sendable {
    let method: RouteMethod
    let subject: RemoteSubject
}

/// The subject of a guard's decision: where a URL leads, and what that demands of other programs.
struct RemoteSubject: Equatable, Sendable {
    let route: RouteEntry?
    /// The action, if no route leads to it.
    let endpoint: Endpoint?
    /// Target and action, if the URL names them and no action has them.
    let names: String?
    let demands: [String]

    /// The subject in words, which are made only to compare it with what the URL leads to later; `nil` if it leads
    /// nowhere.
    private var destination: String? {
        if let route { return "\(route.target)/\(route.action) \(route.pattern.text)" }
        return endpoint?.name ?? names
    }

    static func == (left: RemoteSubject, right: RemoteSubject) -> Bool {
        left.demands == right.demands && left.destination == right.destination
    }
}
