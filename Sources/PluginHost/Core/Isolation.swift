/// The settings for isolated modules: which modules run in processes of their own, what they may reach, and what
/// happens if such a process crashes or hangs.
///
/// An isolated module has the same file and manifest as any other, and is called in the same way. If it crashes, the
/// calls that it was running end with ``/PluginABI/PluginError/Code/moduleCrashed``, and it is started again. See
/// <doc:IsolatedModules>.
public struct Isolation: Sendable {
    /// The modules that run in processes of their own.
    public enum Modules: Sendable, Hashable {
        /// No module.
        case none
        /// The modules with these names. The name of a module is known only when its file has been opened, so a file
        /// whose name suggests one of these (`libShop.so`: `Shop`) is opened in a sandbox first, and any other file by
        /// a scan process without a sandbox.
        case named(Set<String>)
        /// All modules in files. Modules that are linked into the program, or registered by it, are not isolated.
        case all
    }

    /// The modules that run in processes of their own. Default: none.
    public var modules = Modules.none
    /// The rules that state what isolated modules may reach and use. The first rule that names a module applies, or
    /// else the first one for `*`. The modules that rules name are isolated; `*` names all modules. Default: none;
    /// `IsolationRule("*")` then applies to each isolated module.
    public var rules: [IsolationRule] = []
    /// The names of modules whose processes wait, before they open the file, until a debugger is attached. The log
    /// names each process. These modules are isolated, whatever ``modules`` says, and no deadline ends such a process:
    /// neither that of its start, nor ``callTimeout`` and ``hangGrace``. While a process waits, the host starts no
    /// other modules. Default: none.
    public var debuggedModules: Set<String> = []
    /// The path of the program `pluginhost-worker`. Default: the one beside this program or, if there is none, this
    /// program, if it has called ``PluginHost/PluginHost/runWorkerIfAsked()``.
    public var workerPath: String?
    /// How long a synchronous call may run in an isolated module, not counting the calls that the module makes during
    /// that time. After that, the call ends with ``/PluginABI/PluginError/Code/deadlineExceeded``. Default: 30 s.
    public var callTimeout: Duration = .seconds(30)
    /// How long a call may continue after ``callTimeout`` until the process is ended. Default: 5 s.
    public var hangGrace: Duration = .seconds(5)
    /// How long the host waits before it starts a module again: one pause for each crash. If there are more crashes
    /// than pauses, the module has failed, until its file changes. Default: 0, 0.1, 1, 10 and 60 s.
    public var restartPauses: [Duration] = [.zero, .milliseconds(100), .seconds(1), .seconds(10), .seconds(60)]
    /// How long a module must run without a crash before its earlier crashes no longer count. Default: 60 s.
    public var stableTime: Duration = .seconds(60)

    /// How long a module must be idle before its process is ended: the module is then registered, and the next call
    /// starts it; at least 1 s, or `nil` for never. Applies to modules that declare `"stateless": true` and start when
    /// they are first needed, so ``HostConfiguration/start`` must be `lazy`. Default: never. See
    /// <doc:KnownModules#What-is-put-to-rest>.
    public var restAfter: Duration?

    /// Whether a process that crashes writes to its standard error which code was running, as lines "address OFFSET
    /// PATH" and a last line "addresses end". Used by `pluginhost check`.
    package var reportsAddresses = false

    /// Creates settings that isolate no module.
    public init() {}
}
