import CPluginABI
import PluginABI
import PluginFile

/// A module whose code is in the process and whose description fits: what a generation is made of.
final class LoadedModule: @unchecked Sendable {
    // The pointers point to static data of an image that is never unmapped, and what changes is used by one queue only.

    /// Set once more by who takes what is linked into the program.
    var staged: StagedFile
    let toolchain: String
    let abiMinor: UInt16
    let manifest: ModuleManifest
    /// As the registry has them.
    let routes: [RouteEntry]
    let description: UnsafePointer<plugin_module>
    /// By name: `target/action`, `type#action`, `@hook`, `!event`, `~interceptor`.
    private(set) var functions: [String: plugin_function]
    /// By target.
    private(set) var factories: [String: plugin_factory]
    /// Whether it has been activated once. Its globals are not new any more: to serve again, it is
    /// loaded anew.
    private(set) var isSpent = false

    init(
        _ staged: StagedFile, toolchain: String, abiMinor: UInt16, manifest: ModuleManifest, routes: [RouteEntry],
        description: UnsafePointer<plugin_module>, functions: [String: plugin_function],
        factories: [String: plugin_factory]
    ) {
        self.staged = staged
        self.toolchain = toolchain
        self.abiMinor = abiMinor
        self.manifest = manifest
        self.routes = routes
        self.description = description
        self.functions = functions
        self.factories = factories
    }

    /// Notes that a generation was made of it. Its functions are forgotten then, unless another one can be made.
    func spend() {
        isSpent = true
        if !isLinked { (functions, factories) = ([:], [:]) }
    }

    /// The manifest as it is written.
    var manifestText: String { description.pointee.manifest.text }
    var file: String { staged.original }
    var stagedPath: String { staged.path }
    var isLinked: Bool { staged.source == .linked }
}
