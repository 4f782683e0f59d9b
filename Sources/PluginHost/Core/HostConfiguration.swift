import FoundationEssentials
public import PluginABI

/// The settings of a host, given before it starts.
public struct HostConfiguration: Sendable {
    /// The folders whose `*.so` files are modules, in any order.
    public var folders: [String]
    /// Whether subfolders are searched as well, whatever their names, except hidden ones. Links to folders are
    /// followed. Default: no.
    public var includesSubfolders = false
    /// How long the folders must stay unchanged after a change before the host handles it, so that files which a tool
    /// writes one after another count as one change. At most 100 ms; the host begins no later than 100 ms after the
    /// first change. Default: 5 ms.
    public var quietTime: Duration = .milliseconds(5)
    /// A function that receives the path of a file in the folders and returns whether the file is considered; `nil` to
    /// consider all files. For `pluginhost check`.
    package var takesFile: (@Sendable (String) -> Bool)?
    /// Whether to accept files and folders that users other than this one and root can write. Default: they are
    /// refused.
    public var trustsEveryone = false
    /// Whether to load quarantined files, whose modules were being started when a host died.
    public var retriesQuarantined = false
    /// Whether to accept modules that were built by a Swift toolchain other than the host's. They share the host's
    /// runtime, and behave unpredictably where the two toolchains differ.
    public var allowsOtherToolchains = false
    /// Which modules run in processes of their own. Default: none.
    public var isolation = Isolation()
    /// Whether a new or changed file is opened by a scan process first, and by the host only if it does not crash, exit
    /// or hang there. A scan process runs the same program as a worker; if it cannot be started, no file is opened.
    /// Constructors and entry functions run twice. If some modules are isolated, but not all, files are scanned in any
    /// case, to learn the names of their modules. Default: no. See <doc:IsolatedModules>.
    public var safeScan = false
    /// How long the constructors or the entry function of a file may take in a scan process before the process is
    /// ended; at most ``hookTimeout``. Default: 10 s.
    public var scanTimeout: Duration = .seconds(10)
    /// Whether the modules that are linked into the program, or into libraries that it is linked with, are loaded.
    /// Default: yes. They exist only once: if there are several hosts at a time, the first one gets them, and the
    /// others report that in ``PluginHost/problems``.
    public var takesLinkedModules = true
    /// When modules start if their manifests are known without opening their files. Default: with the host. See
    /// <doc:KnownModules>.
    public var start = ModuleStart.eager
    /// The names of modules that start with the host, even if ``start`` is ``HostConfiguration/ModuleStart/lazy``.
    public var eagerModules: Set<String> = []
    /// The folder in which the host keeps what it has learnt about files, so that later hosts need not open those that
    /// have not changed; `nil` for none. It must belong to this user alone. Default: none. See <doc:KnownModules>.
    public var registryCache: String?
    /// Whether the folders are watched, so that files that appear while the host runs are loaded. Default: yes.
    public var watches = true
    /// The schemes of URLs that address `scheme://target/action`. The first one is also the scheme of URLs and patterns
    /// that are written without one (`shop/detail`); if the list is empty, such a text is an error. Default: `app`.
    public var schemes = ["app"]
    /// The scheme of URLs and patterns that are written without one, in lower case.
    var firstScheme: String? { schemes.first?.lowercased() }
    /// The maximum length in bytes of a URL that is opened or asked about, 256 to 262,144; a longer one is refused with
    /// ``/PluginABI/PluginError/Code/invalidURL``. The work of finding a URL's route is bounded for URLs of 16 KiB (see
    /// <doc:URLs>), and grows in proportion to the length. Default: 16,384.
    public var maximumURLLength = 16_384
    /// The timeout of an asynchronous call whose caller sets none. Default: 60 s.
    public var asyncTimeout: Duration = .seconds(60)
    /// How long the shutdown waits for running calls, and for each `willStop` and `tearDown`. Default: 5 s.
    public var shutdownTimeout: Duration = .seconds(5)
    /// How long each piece of code of a module may take while the module starts: its constructors, its entry function,
    /// `activate`, `setUp`, `init` and `didStart`. Code that takes longer continues in a thread of its own, and its
    /// module is not started. Default: 30 s.
    public var hookTimeout: Duration = .seconds(30)
    /// How long a start waits for `activate`, `setUp` or `init` of a module before it continues without the module. The
    /// module, and those that require it, are then `starting`; the others serve. When the code returns, the module
    /// joins them, like one whose file has just appeared; after ``hookTimeout``, it has failed. A start that has
    /// continued without a module waits at most a tenth of a second for the code of each of the others. The start also
    /// waits this long for each `didStart`. If this is not shorter than ``hookTimeout``, the start waits for every
    /// module. Default: 2 s.
    public var hookPatience: Duration = .seconds(2)
    /// How long a module may take to hand over its state: until its running calls have ended, and for each of
    /// `suspend`, `resume` and `unsuspend`. Default: 5 s.
    public var handOverTimeout: Duration = .seconds(5)
    /// The maximum number of calls of a module that wait while it starts, hands over its state, or is started again
    /// after a crash; further ones end with ``/PluginABI/PluginError/Code/overloaded``. Calls whose timeout passes
    /// meanwhile are counted, too. With 0, no call waits: one that needs a registered module begins its start, and ends
    /// with that error. Default: 10,000.
    public var waitingCallsLimit = 10_000
    /// How long a generation that was replaced or removed may stay in use before the host reports it. It remains usable
    /// after that. Default: 30 s.
    public var drainTimeout: Duration = .seconds(30)
    /// How long objects of a generation that was replaced or removed can still be called; after that, calls of them end
    /// with ``/PluginABI/PluginError/Code/generationRetired``. Default: as long as they have a holder.
    public var objectTimeout: Duration?
    /// The environment that every module sees: `production`, `test`, or any other word.
    public var environment = "production"
    /// The program's arguments, which every module sees. Default: those of the process.
    public var arguments = ProgramArguments.all
    /// The program's own values for every module. They are copied when the host is created, and never change.
    public var context: [String: Value] = [:]
    /// The configuration of each module, by its name; each value is a map.
    public var moduleConfiguration: [String: Value] = [:]
    /// The rules that put interceptors of modules into effect. Default: none.
    public var interceptors: [InterceptorRule] = []
    /// The folder in which modules are staged. Default: `$XDG_RUNTIME_DIR/pluginhost`, or a folder of this user in the
    /// temporary folder.
    public var stagingFolder: String?
    /// The folder in which the host keeps versions of modules, and records which modules are being started, so that the
    /// next host can find out what killed this one. Default: `$XDG_STATE_HOME/pluginhost`, or
    /// `~/.local/state/pluginhost`.
    public var stateFolder: String?
    /// The maximum size of a module in bytes, including the libraries that are found next to it. A larger one is not
    /// read and is refused with ``/PluginABI/PluginError/Code/invalidFile``. Default: 256 MiB.
    public var maximumFileBytes = defaultMaximumFileBytes
    /// The number of versions of each module that are kept, besides those in the folders, so that
    /// ``PluginHost/rollback(_:to:force:dryRun:)`` can restore them; at least one. Default: 5.
    public var keptVersions = 5
    /// The maximum size in bytes of all kept versions of all modules together; the last one of each module is kept
    /// regardless. Default: 1 GiB.
    public var keptBytes = 1 << 30
    /// Receives the log entries, on any thread. On a thread that changes modules, a call that would have to wait for
    /// the change ends with ``/PluginABI/PluginError/Code/circularWait``. Default: they are discarded.
    public var log: @Sendable (LogEntry) -> Void = { _ in }

    /// 256 MiB.
    static let defaultMaximumFileBytes = 256 << 20

    /// Creates the configuration of a host for these folders, with the defaults for everything else.
    public init(folders: [String]) { self.folders = folders }
}

extension HostConfiguration {
    /// The usual folder for ``registryCache``: `$XDG_CACHE_HOME/pluginhost`, or `$HOME/.cache/pluginhost`; `nil` if
    /// neither variable is an absolute path.
    public static var defaultRegistryCache: String? {
        let environment = ProcessInfo.processInfo.environment
        if let cache = environment["XDG_CACHE_HOME"], cache.hasPrefix("/") { return "\(cache)/pluginhost" }
        guard let home = environment["HOME"], home.hasPrefix("/") else { return nil }
        return "\(home)/.cache/pluginhost"
    }

    /// When a module starts if it is known without opening its file.
    public enum ModuleStart: String, Sendable, CaseIterable {
        /// The module starts with the host, or when its file appears.
        case eager
        /// The module starts when it is first needed: by a call, a URL, a request for a service, an event, or a module
        /// that requires it. A module that must run without being asked starts with the host; see <doc:KnownModules>.
        case lazy
    }
}
