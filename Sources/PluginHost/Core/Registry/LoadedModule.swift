import PluginABI
import PluginFile
import Synchronization

/// A module whose code is in the process and whose description was checked, from which generations are created; or a
/// registered module, with what is known about it without opening its file.
final class LoadedModule: @unchecked Sendable {
    // The pointers point to static data of an image that is never unmapped; only one queue uses the mutable state.

    /// The copy that was opened. Set a second time for modules that are linked into the program.
    var staged: StagedFile
    let toolchain: String
    let abiMinor: UInt16
    private(set) var outline: ModuleOutline
    /// The manifest; `nil` if the module is only registered and its manifest has not been needed yet.
    private let readManifest: Mutex<ModuleManifest?>
    /// The module's routes in the form of the registry.
    private(set) var routes: [RouteEntry]
    let description: UnsafePointer<plugin_module>
    /// The functions by name: `target/action`, `type#action`, `@hook`, `!event`, `~interceptor`.
    private(set) var functions: [String: plugin_function]
    /// The factories by target.
    private(set) var factories: [String: plugin_factory]
    /// The process that runs the module's code, if the module is isolated; the description then stands in for that of
    /// the module.
    let process: (any ModuleProcess)?
    /// Whether the file was opened. If not, the module has no description, functions or factories.
    let isOpen: Bool
    /// The identity that a registered module and the module loaded from its file share if their manifests are equal.
    private(set) var registration = Registration()
    /// What is known of a module that is not open.
    private let known: KnownManifest?
    /// The program of the host in which the module is known, which owns ``declared``.
    private let program: Generation?
    /// The endpoints that stand in for the module's actions while it is only registered, by name.
    private let declared = Mutex<[String: Endpoint]>([:])
    /// Whether a generation was created from the module. Its globals are then no longer in their initial state, so the
    /// file is loaded again before the module serves again.
    private(set) var isSpent = false

    init(
        _ staged: StagedFile, toolchain: String, abiMinor: UInt16, manifest: ModuleManifest, routes: [RouteEntry],
        description: UnsafePointer<plugin_module>, functions: [String: plugin_function],
        factories: [String: plugin_factory], process: (any ModuleProcess)? = nil
    ) {
        (self.staged, self.toolchain, self.abiMinor) = (staged, toolchain, abiMinor)
        outline = ModuleOutline(manifest)
        readManifest = Mutex(manifest)
        (self.routes, self.description, self.functions, self.factories) = (routes, description, functions, factories)
        self.process = process
        isOpen = true
        known = nil
        program = nil
    }

    /// Creates a registered module.
    ///
    /// - Parameters:
    ///   - staged: The stand-in for the copy of its file, which does not exist.
    ///   - manifest: The known part of its manifest.
    ///   - program: The program of the host.
    init(
        known staged: StagedFile, toolchain: String, abiMinor: UInt16, manifest: KnownManifest,
        routes: [RouteEntry], program: Generation
    ) {
        self.program = program
        (self.staged, self.toolchain, self.abiMinor) = (staged, toolchain, abiMinor)
        (outline, known) = (manifest.outline, manifest)
        readManifest = Mutex(manifest.read)
        (self.routes, description, functions, factories, process) = (routes, Self.noDescription, [:], [:], nil)
        isOpen = false
    }

    /// The identity of a registered module.
    final class Registration: Sendable {}

    private nonisolated(unsafe) static let noDescription = UnsafePointer.immortal(plugin_module())

    /// Returns the stand-in for an action while the module is only registered: an endpoint with the same declaration,
    /// which is not called. `nil` if the module is opened. May be called from any thread.
    func declaredEndpoint(_ name: String, _ action: ModuleManifest.Action) -> Endpoint? {
        guard let program else { return nil }
        return declared.withLock { declared in
            if let present = declared[name] { return present }
            let endpoint = Endpoint(
                name: .immortal(name), parameters: action.parameters.map(Endpoint.Parameter.init),
                isAsync: action.isAsync, isRemote: true, demands: action.demands, hasRest: action.hasRest,
                generation: program
            ) { _, _, _, _ in }
            declared[name] = endpoint
            return endpoint
        }
    }

    /// Takes over what is the same for the module of a file when it is registered and when it is open: its identity; its
    /// routes, so that changes of them at run time stay in effect; and its manifest, since whatever generations refer to
    /// is never freed, and a module may start many times. Must be called before other threads use this module.
    func takeOver(_ other: LoadedModule) {
        let manifest = other.manifest
        guard self.manifest == manifest else { return }
        (registration, routes, outline) = (other.registration, other.routes, other.outline)
        readManifest.withLock { $0 = manifest }
    }

    deinit { process?.end() }

    /// Records that a generation was created from it, and forgets its functions unless another one can be created.
    func spend() {
        isSpent = true
        if !isLinked { (functions, factories) = ([:], [:]) }
    }

    /// The manifest. That of a registered module is read when it is first needed. May be called from any thread.
    var manifest: ModuleManifest {
        readManifest.withLock { present in
            if let present { return present }
            let manifest = known!.manifest
            present = manifest
            return manifest
        }
    }

    /// Whether it is known that no route of the manifest is dead.
    var hasOnlyLiveRoutes: Bool { known.map { $0.read == nil } ?? false }

    /// The text of the manifest.
    var manifestText: String { known?.text.string ?? description.pointee.manifest.text }
    var name: String { outline.name }
    var file: String { staged.original }
    var stagedPath: String { staged.path }
    var isLinked: Bool { staged.source == .linked }
}
