/// A call as an interceptor sees it: the host has checked that the action exists and that the caller may call it, but
/// has not checked the parameters yet.
public struct InterceptedCall: Sendable {
    /// The target; for a call to an object, its type; for an event that a subscriber receives, an empty string.
    public let target: String
    /// The action, or the event.
    public let action: String
    /// The parameters by name, as given by the caller; defaults are added later. The action receives the ones that are
    /// passed to `next`.
    public var parameters: [String: Value]
    /// The origin of the call.
    public let origin: CallOrigin
    /// The pattern of the route that led here; `nil` if no route did.
    public let route: String?
    /// The context for calls that have this one as their parent.
    public let context: HostContext

    /// The trace of the call, and on whose behalf it is made. The rest of the call, and the calls that it leads to, get
    /// the context that an interceptor of the program passes to `next`, for example one with a span of its own. What an
    /// interceptor of a module sets is ignored.
    public var callContext: CallContext {
        get { changedContext ?? context.callContext }
        set { changedContext = newValue }
    }
    /// The call context that an interceptor has set; `nil` if none has.
    package private(set) var changedContext: CallContext?

    package init(
        target: String, action: String, parameters: [String: Value], origin: CallOrigin, route: String?,
        context: HostContext
    ) {
        (self.target, self.action, self.parameters) = (target, action, parameters)
        (self.origin, self.route, self.context) = (origin, route, context)
    }
}
