import CPluginABI
import PluginABI
import Synchronization

/// Changes of the modules of a host, one at a time, and what the program has registered itself.
final class ModuleChanges: Sendable {
    let calls: Calls
    /// Changes run here.
    let queue = SerialThread("host.changes")
    let runner = HookRunner()

    init(_ calls: Calls) { self.calls = calls }

    private var registry: Registry { calls.registry }
    private var hooks: Hooks { Hooks(calls: calls, runner: runner, journal: nil) }

    /// Whether this thread is changing modules, or runs a hook for that: it cannot wait for the end of the change.
    var isChanging: Bool { queue.isCurrent || HookRunner.isCurrent(ObjectIdentifier(calls.core)) }

    /// Runs a change of the registry's modules on this thread, when no other one runs.
    func change<Result: Sendable>(
        _ body: @Sendable () throws(PluginError) -> Result
    ) throws(PluginError) -> Result {
        if isChanging {
            throw PluginError(
                .circularWait,
                "Modules are being changed on this very thread: code that a change runs, such as a setUp, cannot "
                    + "make another change.")
        }
        let outcome: Swift.Result<Result, PluginError> = queue.sync {
            do throws(PluginError) { return .success(try body()) } catch { return .failure(error) }
        }
        return try outcome.get()
    }

    func register(
        _ description: UnsafePointer<plugin_module>, hookTimeout: Duration, configuration: @Sendable (String) -> Value
    ) throws(PluginError) -> ModuleStatus {
        let loader = ModuleLoader(journal: nil, allowsOtherToolchains: true)
        let module = try loader.check(description, .program)
        return try change { () throws(PluginError) in
            let table = registry.table
            if table.isStopped {
                throw PluginError(
                    .hostStopped, "The host has been shut down: \(module.manifest.name) cannot be registered.")
            }
            try checkConflicts(module, table)
            let generation = Generation(
                module, core: calls.core, configuration: configuration(module.manifest.name))
            generation.isStarting.store(true, ordering: .relaxed)
            do throws(PluginError) {
                try hooks.activate(generation, timeout: hookTimeout)
                registry.propose(table.changed { $0.generations = (table.generations + [generation]).inOrder })
                try hooks.begin(.`init`, of: generation, timeout: hookTimeout)?.wait()
            } catch {
                registry.propose(nil)
                drain(generation, timeout: hookTimeout)
                throw error
            }
            registry.publish((registry.table.generations + [generation]).inOrder)
            generation.isStarting.store(false, ordering: .relaxed)
            registry.propose(nil)
            do throws(PluginError) {
                try hooks.begin(.didStart, of: generation, timeout: hookTimeout)?.wait()
            } catch {
                log(error, of: generation)
            }
            calls.deliverSticky(to: [generation])
            calls.postAdded(generation, insteadOf: nil)
            return generation.programStatus
        }
    }

    /// A module is registered whole or not at all: what it claims belongs to who has it already.
    private func checkConflicts(_ module: LoadedModule, _ table: Table) throws(PluginError) {
        var claims = Claims(table.routes)
        for other in table.generations {
            guard other.name != module.manifest.name else {
                throw PluginError(
                    .conflict,
                    "\(module.manifest.name) has the name of a module that is there: \(other.label), of "
                        + "\(other.file), which keeps it. Modules of the program and of files do not replace each other."
                )
            }
            claims.keep(other.manifest!, other.file)
        }
        try claims.take(module, module.file)
    }

    /// What the program has registered under a name.
    func programGeneration(named name: String) -> Generation? {
        registry.table.generations.first { $0.isInProgram && $0.name == name }
    }

    /// Takes a module of the program out of the table.
    func withdraw(_ generation: Generation) {
        registry.publish(registry.table.generations.filter { $0 !== generation })
    }

    /// Tears a module down when it is not used any more.
    func drain(_ generation: Generation, timeout: Duration) {
        guard generation.isDrained else {
            queue.async(after: .milliseconds(20)) { self.drain(generation, timeout: timeout) }
            return
        }
        do throws(PluginError) { try hooks.tearDown(generation, timeout: timeout) } catch { log(error, of: generation) }
    }

    private func log(_ error: PluginError, of generation: Generation) {
        calls.settings.log(
            LogEntry(level: .error, module: generation.name, message: "\(generation.label) \(error.message)"))
    }

    /// For a host that ends and was never started.
    func unregisterAll() {
        guard !registry.table.generations.isEmpty else { return }
        _ = try? change { () throws(PluginError) in
            for generation in registry.table.generations.reversed() {
                withdraw(generation)
                drain(generation, timeout: .seconds(5))
            }
        }
    }

    /// What the program has registered, by name.
    var programModules: [ModuleStatus] {
        registry.table.generations.filter(\.isInProgram).map(\.programStatus)
    }
}

extension Generation {
    /// Whether the program has registered it.
    var isInProgram: Bool { file == StagedFile.program.original }
}

extension Generation {
    fileprivate var programStatus: ModuleStatus {
        var status = ModuleStatus(state: .active, file: file, since: created)
        status.name = name
        status.version = version.description
        status.generation = number
        status.targets = manifest?.targets.map(\.name) ?? []
        status.interceptors = manifest?.interceptors.map(\.name) ?? []
        return status
    }
}
