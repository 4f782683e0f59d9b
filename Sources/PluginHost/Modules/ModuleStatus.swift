public import FoundationEssentials
public import PluginABI
import PluginFile

/// The status of one module file in a plugins folder.
public struct ModuleStatus: Sendable {
    /// The module's name; `nil` if the file could not be read as a module.
    public var name: String?
    /// The module's version; `nil` if there is no name.
    public var version: String?
    /// The state of the file.
    public var state: State
    /// The path of the file in the plugins folder; `(linked) NAME` for a module that is linked into the program, and
    /// `(program)` for one that the program has registered.
    public var file: String
    /// The number of the generation that serves, counted across all modules of the process; `nil` if none serves.
    public var generation: Int?
    /// The id of the process of its own in which the module runs; `nil` if it runs in this process, or does not serve.
    public var process: Int32?
    /// The memory and the processor time of that process, when this status was made; `nil` if there is no such process,
    /// or `/proc` is not mounted.
    public var usage: ProcessUsage?
    /// How many times the module was started again after a crash, since the host was started.
    public var restarts = 0
    /// The names of the module's targets.
    public var targets: [String] = []
    /// The names of the interceptors that the module offers. ``PluginHost/interceptors`` lists those in effect.
    public var interceptors: [String] = []
    /// The reason why the module is not active.
    public var error: PluginError?
    /// The problems of an active module: its dead routes.
    public var problems: [PluginError] = []
    /// Additional information as text.
    public var note: String?
    /// The time when the file entered its state.
    public var since: Date

    /// The state of a file. The raw values are the state names in the output of `pluginhost`.
    public enum State: String, Sendable, CaseIterable {
        /// The module can be called.
        case active
        /// The module is known and starts when it is first needed. See <doc:KnownModules>.
        case registered
        /// The module was loaded; the host has not yet decided whether it serves.
        case loaded
        /// The module is being started, or requires one that is: it can be called when the code that runs for the start
        /// has returned.
        case starting
        /// Another file of the same module serves.
        case superseded
        /// The file is being written, the module has an unmet requirement, or it lacks a permission.
        case waiting
        /// The module could not be loaded or started, or claims a name that belongs to another module.
        case failed
        /// A host died while the module was being started.
        case quarantined
        /// The file is not a module, but a library that a module finds through `$ORIGIN`.
        case library
        /// The host was shut down.
        case retired
    }

    /// - Parameters:
    ///   - outline: The outline of the module; `nil` if the file could not be read as a module.
    ///   - generation: The generation that serves, if there is one.
    init(_ state: State, file: String, since: Date, _ outline: ModuleOutline?, _ generation: Generation? = nil) {
        (self.state, self.file, self.since) = (state, file, since)
        name = outline?.name
        version = outline?.version.description
        self.generation = generation?.number
        let code = generation?.module
        process = code?.hasEnded == false ? code?.process?.id : nil
        usage = code?.process?.usage
        targets = outline?.targets ?? []
        interceptors = outline?.interceptors ?? []
    }

    /// The name and version, such as `ModuleA 1.0.0`, or the path of the file if there is no name.
    var title: String { name.map { "\($0) \(version ?? "")" } ?? file }
}
