import PluginABI

/// The parts of a host that use the disk, created when it starts.
struct Disk: Sendable {
    let staging: Staging
    let journal: Journal
    let store: VersionStore
    let loader: ModuleLoader
    /// The processes of isolated modules.
    let workers: Workers
    /// What opens files before the host does, if that is wanted, or if the names of their modules decide where they are
    /// opened; `nil` if nothing does.
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
