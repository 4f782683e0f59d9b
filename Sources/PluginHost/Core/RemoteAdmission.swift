import PluginABI

/// The decision of the guard that a URL may be opened with a method, as long as it leads to the same subject.
struct RemoteAdmission: Sendable {
    let method: RouteMethod
    let subject: RemoteSubject
}

/// The subject of a guard's decision: where a URL leads, and what that demands of other programs.
struct RemoteSubject: Equatable, Sendable {
    let destination: String?
    let demands: [String]
}
