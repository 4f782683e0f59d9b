public import PluginABI

extension PluginHost {
    /// What a host is told before it starts.
    public struct Configuration: Sendable {
        /// The folders whose `*.so` files are modules, in any order.
        public var folders: [String]
        /// Takes files and folders that others than this user and root can write. Default: it refuses them.
        public var trustsEveryone = false
        /// Loads files again that were being loaded when a host died.
        public var retriesQuarantined = false
        /// Takes modules that were built by another Swift toolchain than the host. They share its runtime, and
        /// misbehave in ways that nobody can predict where the two differ.
        public var allowsOtherToolchains = false
        /// Watches the folders, and loads what appears while the host runs. Default: it does.
        public var watches = true
        /// The schemes of URLs that address `scheme://target/action`, in lower case.
        public var schemes: Set<String> = ["app"]
        /// How long an asynchronous call may take when its caller does not say. Default: 60 s.
        public var asyncTimeout: Duration = .seconds(60)
        /// How long the end waits for running calls, and for each `willStop` and `tearDown`. Default: 5 s.
        public var shutdownTimeout: Duration = .seconds(5)
        /// How long an asynchronous hook (`setUp`, `init`, `didStart`) may take. Default: 30 s.
        public var hookTimeout: Duration = .seconds(30)
        /// What the program runs as, for every module: `production`, `test`, or a word of its own.
        public var environment = "production"
        /// The arguments of the program, for every module. Default: those of the process.
        public var arguments = CommandLine.arguments
        /// The program's own values for every module. They are copied when the host is made, and never change.
        public var context: [String: Value] = [:]
        /// What modules are told, by their names; each value is a map.
        public var moduleConfiguration: [String: Value] = [:]
        /// Where copies of the modules are opened from. Default: `$XDG_RUNTIME_DIR/pluginhost`, or a folder of this
        /// user in the temporary one.
        public var stagingFolder: String?
        /// Where the host remembers what killed it. Default: `$XDG_STATE_HOME/pluginhost`, or
        /// `~/.local/state/pluginhost`.
        public var stateFolder: String?
        /// Takes the lines of the log, from any thread. Default: nothing happens with them.
        public var log: @Sendable (LogEntry) -> Void = { _ in }

        /// A host for these folders, and the defaults for everything else.
        public init(folders: [String]) { self.folders = folders }
    }
}
