public import Foundation
public import PluginABI
import PluginFile

/// What the host knows of one file in a plugins folder.
public struct ModuleStatus: Sendable {
    /// The module's name; nil while the file could not be read as a module.
    public var name: String?
    /// The module's version; nil as long as there is no name.
    public var version: String?
    /// What has become of it.
    public var state: State
    /// The path of the file in the plugins folder; `(linked) NAME` for a module that is linked into the program, and
    /// `(program)` for one that the program has registered.
    public var file: String
    /// The number of the generation that serves, counted over all modules of the process; nil when none does.
    public var generation: Int?
    /// The names of the module's targets.
    public var targets: [String] = []
    /// The names of the interceptors that the module offers. ``PluginHost/interceptors`` says which take effect.
    public var interceptors: [String] = []
    /// Why it is not active.
    public var error: PluginError?
    /// What else there is to know, in words.
    public var note: String?
    /// Since when it is in this state.
    public var since: Date

    /// What has become of a file. The raw values are the words of the program `pluginhost`.
    public enum State: String, Sendable, CaseIterable {
        /// It can be called.
        case active
        /// It was loaded, and nothing is decided about it yet.
        case loaded
        /// Another file of the same module serves.
        case superseded
        /// The file is being written, or what the module requires is not there.
        case waiting
        /// It could not be loaded or started, or claims what belongs to another one.
        case failed
        /// A host died while it was loaded.
        case quarantined
        /// No module, but a library that a module finds beside itself.
        case library
        /// The host was shut down.
        case retired
    }

    /// - Parameters:
    ///   - manifest: Of the module; nil while the file could not be read as one.
    ///   - generation: What serves of it.
    init(_ state: State, file: String, since: Date, _ manifest: ModuleManifest?, _ generation: Generation? = nil) {
        (self.state, self.file, self.since) = (state, file, since)
        name = manifest?.name
        version = manifest?.version.description
        self.generation = generation?.number
        targets = manifest?.targets.map(\.name) ?? []
        interceptors = manifest?.interceptors.map(\.name) ?? []
    }

    /// `ModuleA 1.0.0`, or the file while there is no name.
    var title: String { name.map { "\($0) \(version ?? "")" } ?? file }
}
