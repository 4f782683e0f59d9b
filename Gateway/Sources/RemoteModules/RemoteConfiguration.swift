public import NIOSSL

/// The settings of a mount: how a host reaches modules of another one.
public struct RemoteConfiguration: Sendable {
    /// The path of a file with the bearer token for the other host; `nil` for none. The first line that is not empty and
    /// does not begin with `#` counts: a token, possibly after a name and a space. The file must belong to the user of
    /// the program or root, and nobody else may read it. It is read again when it has changed.
    public var tokenFile: String?
    /// How the certificate of the other host is verified; `nil` for the system's certificates.
    public var tls: TLSConfiguration?
    /// How long a call, or an element of a cursor, may take if its caller sets no timeout.
    public var callTimeout: Duration = .seconds(30)
    /// How long an attempt to connect may take.
    public var connectTimeout: Duration = .seconds(2)
    /// The time between two requests for the offers of the other host.
    public var interval: Duration = .seconds(5)
    /// How many calls may be in flight, 1 or more, including cursors that are not at their end. Further ones fail with
    /// `overloaded`.
    public var callLimit = 64
    /// How many connections may be open, 1 or more. Further calls wait for one.
    public var connectionLimit = 16
    /// The maximum size of a result, or of an element of a cursor, in bytes.
    public var answerLimit = 16 << 20
    /// The maximum size of the description of all that the other host offers, in bytes.
    public var descriptionLimit = 4 << 20
    /// How many mounts a call may pass, 1 to 16.
    public var hopLimit = 8
    /// Whether the mounted actions are remote, so that a gateway of this host offers them, too.
    public var isReexported = false
    /// The prefix of the names of the modules that stand for targets: `remote.` makes `remote.B` of the target `B`.
    public var modulePrefix = "remote."
    /// When calls are no longer sent because the other host does not answer.
    public var breaker = Breaker()

    /// The time between two replacements of a target's module, once it has been replaced often.
    var replacementPause: Duration = .seconds(10)

    public init() {}

    /// The settings of the circuit breaker. It opens when ``failures`` calls in a row, or the given ``share`` of the
    /// last calls, have not been answered. While it is open, calls fail immediately. After a pause, one call is sent as
    /// a probe; if it is answered, the breaker closes.
    public struct Breaker: Sendable {
        /// How many calls in a row; 1 or more.
        public var failures = 5
        /// The share of the last ``window`` calls; more than 0, at most 1.
        public var share = 0.5
        /// The number of calls that ``share`` refers to; 1 or more.
        public var window = 20
        /// The time from the opening to the probe.
        public var pause: Duration = .seconds(5)

        public init() {}
    }
}
