public import PluginABI

/// A call that comes from another program, as the program's guard sees it before it is made.
public struct RemoteCall: Sendable {
    /// The URL as it was given.
    public let url: String
    /// In lower case; nil for a URL without one.
    public let scheme: String?
    /// In lower case; nil for a URL without one.
    public let host: String?
    /// What the URL leads to; nil where it leads nowhere.
    public let target: String?
    /// The action of the target that the URL leads to; nil where it leads nowhere.
    public let action: String?
    /// What rides along with the URL.
    public let parameters: [String: Value]
}

/// What a guard says of a remote call.
public enum RemoteDecision: Sendable {
    /// Let it be made. It still reaches remote actions only.
    case pass
    /// End it with ``/PluginABI/PluginError/Code/refused`` and this message.
    case refuse(String)
    /// Open this URL instead, as a remote call; the guard is not asked again.
    case redirect(String)
}

/// Decides about remote calls. Called on the thread of the call, also concurrently; must not have side effects, since
/// `canOpen` asks it, too.
public typealias RemoteGuard = @Sendable (RemoteCall) -> RemoteDecision
