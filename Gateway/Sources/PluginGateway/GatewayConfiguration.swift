/// The settings of a gateway.
public struct GatewayConfiguration: Sendable {
    /// The path before all paths of the gateway, such as `/plugins`; empty for none. Without a slash at its end.
    public var prefix = ""
    /// Who may use the gateway.
    public var access = Access.loopback
    /// The names under which clients on this machine may address the gateway (`Host`), besides `localhost`, `127.0.0.1`
    /// and `[::1]`. Checked for ``Access/loopback``, and for ``Access/everyone`` if it is not empty, against web pages
    /// that resolve their own name to this machine.
    public var hosts: Set<String> = []
    /// Which web pages of other origins may use the gateway; `nil` for none.
    public var cors: CORS?
    /// The maximum size of a request's body, in bytes.
    public var bodyLimit = 1 << 20
    /// How long a client may take to send a body.
    public var bodyTimeout: Duration = .seconds(30)
    /// How long a client may read nothing of an answer before its connection is closed; up to a quarter longer in fact.
    public var writeTimeout: Duration = .seconds(60)
    /// How long a call, or an element of a cursor, may take if the request does not say.
    public var callTimeout: Duration = .seconds(30)
    /// The longest time that a request may ask for.
    public var maximumCallTimeout: Duration = .seconds(300)
    /// How many calls may be in flight; 1 or more. A call counts until its action is over, even if its client has left,
    /// and until the end of the cursor that it returns. This is also the number of threads that calls may occupy.
    public var callLimit = 256
    /// How many calls of one module may be in flight; 1 or more.
    public var moduleCallLimit = 64
    /// How many bytes of answers may wait for clients to read them; answers of at most 64 KiB do not count.
    public var unsentLimit = 256 << 20
    /// How many event streams may be open.
    public var streamLimit = 1000
    /// How many events are kept for clients that resume a stream; 1 or more.
    public var keptEvents = 1000
    /// How many calls of a request's callbacks may wait to be sent, 1 or more, in at most 1 MiB. Further ones fail.
    public var callbackBuffer = 1000
    /// The time between two heartbeats of an event stream; the page expects one in 60 seconds.
    public var heartbeat: Duration = .seconds(15)
    /// How long the gateway continues to accept requests after it has become not ready, so that a load balancer can
    /// notice.
    public var drainDelay: Duration = .zero
    /// How long calls in flight, and the transfer of bodies and answers, may continue when the gateway ends.
    public var drainTimeout: Duration = .seconds(10)
    /// How many elements of a cursor one response may have.
    public var cursorLimit = 100_000
    /// What the page at `/` offers. It shows more than calls need, such as the paths of files and the texts of errors,
    /// to everybody who may use the gateway.
    public var page = Page.reads

    public init() {}

    /// What a gateway's page offers.
    public enum Page: String, Sendable {
        /// There is no page: `/` and `/page/` lead to routes of modules.
        case off
        /// The page shows modules, routes and events, and calls remote actions.
        case reads
        /// Whoever may use the gateway can also remove, roll back, restart and retry modules.
        case changes
    }

    /// Who may use a gateway.
    public enum Access: Sendable {
        /// Clients on this machine. The address of the client must be known; see ``ConnectionContext``.
        case loopback
        /// Clients that send one of these tokens (`Authorization: Bearer …`).
        case tokens(BearerTokens)
        /// Clients with a certificate that the server has verified. The server serves TLS and asks for certificates.
        case certificates
        /// All clients except web pages of other origins. For a program whose own middleware decides.
        case everyone
    }
}
