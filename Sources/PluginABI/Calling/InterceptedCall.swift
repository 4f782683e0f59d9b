/// A call, as an interceptor sees it: after the host's checks (is it there, may other programs call it), before its
/// parameters are checked.
public struct InterceptedCall: Sendable {
    /// The target; of a call on an object the type; empty for a subscriber of an event.
    public let target: String
    /// The action, or the event.
    public let action: String
    /// The parameters by name, as given; defaults come later. What `next` gets instead, the action gets.
    public var parameters: [String: Value]
    /// Where the call comes from.
    public let origin: CallOrigin
    /// The pattern of the route that led here; nil where the call came in another way.
    public let route: String?
    /// The host, for calls that are made for this one.
    public let context: HostContext

    package init(
        target: String, action: String, parameters: [String: Value], origin: CallOrigin, route: String?,
        context: HostContext
    ) {
        self.target = target
        self.action = action
        self.parameters = parameters
        self.origin = origin
        self.route = route
        self.context = context
    }
}
