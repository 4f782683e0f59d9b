public import PluginABI

/// What a host is told before it starts.
public struct HostConfiguration: Sendable {
    /// The folders whose `*.so` files are modules, in any order.
    public var folders: [String]
    /// Looks into the folders below these as well, whatever their names, but hidden ones. Links to folders are followed.
    /// Default: it does not.
    public var includesSubfolders = false
    /// For how long nothing must have changed in the folders before what has changed is looked at, so that what a
    /// tool brings bit by bit is one change. At most 100 ms, and never longer than that after the first change.
    /// Default: 5 ms.
    public var quietTime: Duration = .milliseconds(5)
    /// Which files of the folders are looked at, by their paths; nil for all. For `pluginhost check`.
    package var takesFile: (@Sendable (String) -> Bool)?
    /// Takes files and folders that others than this user and root can write. Default: it refuses them.
    public var trustsEveryone = false
    /// Loads files again that were being loaded when a host died.
    public var retriesQuarantined = false
    /// Takes modules that were built by another Swift toolchain than the host. They share its runtime, and
    /// misbehave in ways that nobody can predict where the two differ.
    public var allowsOtherToolchains = false
    /// Takes the modules that are linked into the program. Default: it does. They are there only once: of several
    /// hosts at a time the first one has them, and the others say so among their ``PluginHost/problems``.
    public var takesLinkedModules = true
    /// Watches the folders, and loads what appears while the host runs. Default: it does.
    public var watches = true
    /// The schemes of URLs that address `scheme://target/action`, in lower case.
    public var schemes: Set<String> = ["app"]
    /// How many bytes a URL may have that is opened or asked about, 256 to 262,144; a longer one is
    /// ``/PluginABI/PluginError/Code/invalidURL``. What finding its route may take is bounded for URLs of 16 KiB (see
    /// <doc:URLs>), and grows in proportion. Default: 16,384.
    public var maximumURLLength = 16_384
    /// How long an asynchronous call may take when its caller does not say. Default: 60 s.
    public var asyncTimeout: Duration = .seconds(60)
    /// How long the end waits for running calls, and for each `willStop` and `tearDown`. Default: 5 s.
    public var shutdownTimeout: Duration = .seconds(5)
    /// How long each piece of code may take that a module runs while it starts: its constructors, its entry function,
    /// `activate`, `setUp`, `init` and `didStart`. What takes longer goes on in a thread of its own, and its module
    /// is not started. Default: 30 s.
    public var hookTimeout: Duration = .seconds(30)
    /// How long a module may take to hand over its state: until its running calls have ended, and for each of
    /// `suspend`, `resume` and `unsuspend`. Default: 5 s.
    public var handOverTimeout: Duration = .seconds(5)
    /// How many calls of a module are held back meanwhile; more of them end with
    /// ``/PluginABI/PluginError/Code/overloaded``. Default: 10,000.
    public var waitingCallsLimit = 10_000
    /// How long a generation that was replaced or removed may still be used before that is told. It goes on being
    /// used. Default: 30 s.
    public var drainTimeout: Duration = .seconds(30)
    /// How long objects of a generation that was replaced or removed still answer. Default: as long as somebody
    /// holds them. From then on they end calls with ``/PluginABI/PluginError/Code/generationRetired``.
    public var objectTimeout: Duration?
    /// What the program runs as, for every module: `production`, `test`, or a word of its own.
    public var environment = "production"
    /// The arguments of the program, for every module. Default: those of the process.
    public var arguments = ProgramArguments.all
    /// The program's own values for every module. They are copied when the host is made, and never change.
    public var context: [String: Value] = [:]
    /// What modules are told, by their names; each value is a map.
    public var moduleConfiguration: [String: Value] = [:]
    /// The interceptors of modules that take effect. Default: none.
    public var interceptors: [InterceptorRule] = []
    /// Where copies of the modules are opened from. Default: `$XDG_RUNTIME_DIR/pluginhost`, or a folder of this
    /// user in the temporary one.
    public var stagingFolder: String?
    /// Where the host remembers what killed it, and keeps versions of modules. Default: `$XDG_STATE_HOME/pluginhost`, or
    /// `~/.local/state/pluginhost`.
    public var stateFolder: String?
    /// How long a module may be, in bytes, together with the libraries that it finds beside itself. What is longer is
    /// not read: its error is ``/PluginABI/PluginError/Code/invalidFile``. Default: 256 MiB.
    public var maximumFileBytes = defaultMaximumFileBytes
    /// How many versions of each module are kept, besides those that lie in the folders, so that
    /// ``PluginHost/rollback(_:to:force:dryRun:)`` can put them back; at least one. Default: 5.
    public var keptVersions = 5
    /// How many bytes all kept versions of all modules may take together; the last one of each module is kept all
    /// the same. Default: 1 GiB.
    public var keptBytes = 1 << 30
    /// Takes the lines of the log, from any thread. Default: nothing happens with them.
    public var log: @Sendable (LogEntry) -> Void = { _ in }

    /// 256 MiB.
    static let defaultMaximumFileBytes = 256 << 20

    /// A host for these folders, and the defaults for everything else.
    public init(folders: [String]) { self.folders = folders }
}
