public import PluginABI

/// A call from another program, as the program's guard sees it before it is made.
public struct RemoteCall: Sendable {
    /// The URL as it was given.
    public let url: String
    /// The scheme in lower case; `nil` if the URL has none.
    public let scheme: String?
    /// The host in lower case; `nil` if the URL has none.
    public let host: String?
    /// The target of the action that the URL leads to; `nil` for the closure of a route. If the URL leads to nothing
    /// that other programs may open: the target that it names, if it has the form `scheme://target/action`, otherwise
    /// `nil`.
    public let target: String?
    /// The action of the target; `nil` if there is no target.
    public let action: String?
    /// The pattern of the route by which the URL leads to the action; `nil` if it leads there without a route, or
    /// nowhere.
    public let route: String?
    /// The parameters as the action would get them: those that were passed in addition to the URL, those of the URL,
    /// and the defaults, converted to the declared types. Parameters without a value are left out. If the URL leads to
    /// nothing, only those that were passed in addition to it.
    public let parameters: [String: Value]
    /// The demands of the action on other programs (`.remote(requires: "login")`).
    public let demands: [String]
    /// The trace of the call, and on whose behalf it is made; empty if the program has set neither
    /// (`PluginHost.withCallContext`).
    public let callContext: CallContext
}

/// A guard's decision about a remote call.
public enum RemoteDecision: Sendable {
    /// Make the call. It still reaches only actions that are declared remote.
    case pass
    /// End the call with ``/PluginABI/PluginError/Code/refused`` and this message.
    case refuse(String)
    /// Open this URL instead, as a remote call; the guard is not asked again.
    case redirect(String)
    /// Ask the asynchronous form of the guard. An opening that cannot wait for it ends with
    /// ``/PluginABI/PluginError/Code/asynchronousGuard``. For `canOpen`, this counts as a pass.
    case ask
}

/// The final decision about a remote call, by the asynchronous form of a guard.
public enum RemoteAnswer: Sendable {
    /// Make the call. It still reaches only actions that are declared remote.
    case pass
    /// End the call with ``/PluginABI/PluginError/Code/refused`` and this message.
    case refuse(String)
    /// Open this URL instead, as a remote call; the guard is not asked again.
    case redirect(String)
}

/// A function that decides about remote calls. It is called on the thread of the call, possibly concurrently. It must
/// not have side effects, because `canOpen` calls it, too.
public typealias RemoteGuard = @Sendable (RemoteCall) -> RemoteDecision

/// A function that decides about the remote calls for which the ``RemoteGuard`` has returned ``RemoteDecision/ask``. It
/// can have side effects, such as a login. An error that it throws ends the call.
public typealias AsynchronousRemoteGuard = @Sendable (RemoteCall) async throws -> RemoteAnswer

/// The two forms of a program's guard.
struct RemoteGuardForms: Sendable {
    let check: RemoteGuard
    let decide: AsynchronousRemoteGuard?
}
