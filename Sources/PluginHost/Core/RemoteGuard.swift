public import PluginABI

/// A call from another program, as the program's guard sees it before it is made.
public struct RemoteCall: Sendable {
    /// The URL as it was given.
    public let url: String
    /// The scheme in lower case; `nil` if the URL has none.
    public let scheme: String?
    /// The host in lower case; `nil` if the URL has none.
    public let host: String?
    /// The target that the URL leads to; `nil` if it leads to none.
    public let target: String?
    /// The action of the target that the URL leads to; `nil` if it leads to none.
    public let action: String?
    /// The parameters that were passed in addition to the URL.
    public let parameters: [String: Value]
}

/// A guard's decision about a remote call.
public enum RemoteDecision: Sendable {
    /// Make the call. It still reaches only actions that are declared remote.
    case pass
    /// End the call with ``/PluginABI/PluginError/Code/refused`` and this message.
    case refuse(String)
    /// Open this URL instead, as a remote call; the guard is not called again.
    case redirect(String)
}

/// A function that decides about remote calls. It is called on the thread of the call, possibly concurrently. It must
/// not have side effects, because `canOpen` calls it, too.
public typealias RemoteGuard = @Sendable (RemoteCall) -> RemoteDecision
