import PluginABI
import PluginFile

/// The parts of a host that use the disk, created when it starts.
struct Disk: Sendable {
    let staging: Staging
    let journal: Journal
    let store: VersionStore
    let loader: ModuleLoader
    /// The record of what earlier hosts have learnt about files; `nil` if none is kept.
    let registry: RegistryCache?
    let registrar: Registrar
    /// The processes of isolated modules.
    let workers: Workers
    /// The safe scan, if it is wanted, or if the names of modules decide where their files are opened; otherwise `nil`.
    let scan: SafeScan?

    /// - Parameter whenSilent: Called, on the thread that changes modules, while code of a file takes long to return.
    /// - Throws: `stagingFailed`.
    init(
        _ configuration: HostConfiguration, _ runner: HookRunner, owner: HostCore, _ workers: Workers,
        whenSilent: @escaping @Sendable () -> Void
    ) throws(PluginError) {
        self.workers = workers
        scan =
            (configuration.safeScan || workers.areUsed) && !workers.isolatesAll
            ? SafeScan(workers, limit: min(configuration.scanTimeout, configuration.hookTimeout)) : nil
        let registrar = Registrar(configuration, workers, owner.program)
        self.registrar = registrar
        let routes = owner.registry.table.routes
        let prepare: @Sendable (RegistryContent) -> PreparedRecords = { PreparedRecords(of: $0, registrar, routes) }
        registry = configuration.registryCache.map { folder in
            RegistryCache(
                folder: folder, key: configuration.registryKey,
                preparing: configuration.start == .lazy ? prepare : nil)
        }
        staging = try Staging(base: configuration.stagingFolder, maximumFileBytes: configuration.maximumFileBytes)
        journal = Journal(stateFolder: configuration.stateFolder, checksTrust: !configuration.trustsEveryone)
        store = VersionStore(
            stateFolder: configuration.stateFolder,
            limit: .init(versions: configuration.keptVersions, bytes: configuration.keptBytes),
            checksTrust: !configuration.trustsEveryone)
        loader = ModuleLoader(
            journal: journal, allowsOtherToolchains: configuration.allowsOtherToolchains,
            scheme: configuration.firstScheme, workers: workers,
            guardian: Guardian(
                runner: runner, owner: ObjectIdentifier(owner), timeout: configuration.hookTimeout,
                silence: min(Patience.silence, configuration.hookPatience), whenSilent: whenSilent,
                log: configuration.log))
        if configuration.retriesQuarantined { journal.release() }
    }
}

extension HostConfiguration {
    /// The conditions under which what is recorded about files is valid.
    var registryKey: RegistryKey {
        RegistryKey(
            // Files are recorded, and named in errors, by paths that begin with the folder's path as it was given.
            folders: folders.map { $0.utf8.first == UInt8(ascii: "/") ? $0 : "\(".".withoutLinks):\($0)" },
            settings: [
                firstScheme ?? "", "toolchains \(allowsOtherToolchains)", "trust \(trustsEveryone)",
                "size \(maximumFileBytes)", "isolated \(isolation.modules.key)", "scan \(safeScan)",
                "subfolders \(includesSubfolders)",
                "limits \(scanTimeout.nanoseconds) \(hookTimeout.nanoseconds)",
            ])
    }
}

extension Isolation.Modules {
    fileprivate var key: String {
        switch self {
        case .none: ""
        case .all: "all"
        case .named(let names): names.sorted().joined(separator: ",")
        }
    }
}
