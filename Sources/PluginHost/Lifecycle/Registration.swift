import CPluginABI
public import PluginABI
import PluginFile
import Synchronization

extension PluginHost {
    /// Registers a module that is part of the program: its targets, routes and services, through the same checks and in
    /// the same table as those of a file. Works before and after ``start()``.
    ///
    ///     try host.register(Shop.self)
    ///
    /// - Parameter module: The same type that a shared library would export.
    /// - Throws: As ``register(_:)-(Manifest)``.
    public func register(_ module: any Module.Type) throws(PluginError) { try register(module.manifest) }

    /// Registers what a manifest says, whole or not at all.
    ///
    ///     try host.register(Manifest("Clock", version: "1.0.0") {
    ///         Target("Clock") {
    ///             Action("year") { 2026 }
    ///         }
    ///     })
    ///
    /// Its `setUp` and its `init` run before anybody else can call it, and can refuse; then its `didStart`. What waits for
    /// it is started. What a registration takes is never given back, like the code of a module.
    ///
    /// - Parameter manifest: Its name must not be that of another module.
    /// - Throws: ``/PluginABI/PluginError/Code/invalidManifest``; ``/PluginABI/PluginError/Code/conflict``, naming both
    ///   sides, when another module has the name, a target, a route or a service; what `setUp` throws;
    ///   ``/PluginABI/PluginError/Code/circularWait`` from code that a change of modules runs, such as a `setUp`;
    ///   ``/PluginABI/PluginError/Code/hostStopped``.
    public func register(_ manifest: Manifest) throws(PluginError) {
        let status = try dispatcher.register(manifest.export(), hookTimeout: configuration.hookTimeout) { name in
            self.dispatcher.moduleConfiguration.withLock { $0[name] } ?? [:]
        }
        startedLifecycle?.tell(.added(status))
        startedLifecycle?.settleAgain()
        tellRouteProblems()
    }

    /// Takes away what the program has registered under a name: no new calls from now on, then its `tearDown`, after the
    /// last call has ended and nobody holds an object of it.
    ///
    /// - Parameter name: The name of a manifest that was registered.
    /// - Returns: Whether there was one.
    /// - Throws: ``/PluginABI/PluginError/Code/circularWait`` from code that a change of modules runs.
    @discardableResult
    public func unregister(_ name: String) throws(PluginError) -> Bool {
        let lifecycle = startedLifecycle
        let wasThere = try dispatcher.change { () throws(PluginError) in
            guard let generation = self.dispatcher.programGeneration(named: name) else { return false }
            lifecycle?.announceStop(to: [generation])
            lifecycle?.state.withLock { $0.leaving.append(Draining(generation: generation)) }
            self.dispatcher.withdraw(generation)
            let status = GenerationStatus(generation, .draining)
            lifecycle?.tell(.removed(status, "the program has unregistered it."))
            self.dispatcher.postRemoved(generation)
            if let lifecycle {
                lifecycle.retire([generation])
            } else {
                self.dispatcher.drain(generation, timeout: self.configuration.hookTimeout)
            }
            return true
        }
        // What it claimed is free now, and what required it waits.
        if wasThere { lifecycle?.settleAgain() }
        return wasThere
    }
}

extension Dispatcher {
    /// Runs a change of the registry's modules on this thread, when no other one runs.
    func change<Result: Sendable>(
        _ body: @Sendable () throws(PluginError) -> Result
    ) throws(PluginError) -> Result {
        if changes.isCurrent || HookRunner.isCurrent(ObjectIdentifier(self)) {
            throw PluginError(
                .circularWait,
                "Modules are being changed on this very thread: code that a change runs, such as a setUp, cannot "
                    + "make another change.")
        }
        let outcome: Swift.Result<Result, PluginError> = changes.sync {
            do throws(PluginError) { return .success(try body()) } catch { return .failure(error) }
        }
        return try outcome.get()
    }

    fileprivate func register(
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
                module, dispatcher: self, configuration: configuration(module.manifest.name))
            generation.isStarting.store(true, ordering: .relaxed)
            do throws(PluginError) {
                try generation.activate(timeout: hookTimeout)
                registry.propose(table.changed { $0.generations = (table.generations + [generation]).inOrder })
                try generation.beginHook(.`init`, timeout: hookTimeout)?.wait()
            } catch {
                registry.propose(nil)
                drain(generation, timeout: hookTimeout)
                throw error
            }
            registry.publish((registry.table.generations + [generation]).inOrder)
            generation.isStarting.store(false, ordering: .relaxed)
            registry.propose(nil)
            do throws(PluginError) {
                try generation.beginHook(.didStart, timeout: hookTimeout)?.wait()
            } catch {
                log(error, of: generation)
            }
            deliverSticky(to: [generation])
            postAdded(generation, insteadOf: nil)
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
    fileprivate func programGeneration(named name: String) -> Generation? {
        registry.table.generations.first { $0.isInProgram && $0.name == name }
    }

    /// Takes a module of the program out of the table.
    fileprivate func withdraw(_ generation: Generation) {
        registry.publish(registry.table.generations.filter { $0 !== generation })
    }

    /// Tears a module down when it is not used any more.
    fileprivate func drain(_ generation: Generation, timeout: Duration) {
        guard generation.isDrained else {
            changes.async(after: .milliseconds(20)) { self.drain(generation, timeout: timeout) }
            return
        }
        do throws(PluginError) { try generation.tearDown(timeout: timeout) } catch { log(error, of: generation) }
    }

    private func log(_ error: PluginError, of generation: Generation) {
        settings.log(
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

    fileprivate var programStatus: ModuleStatus {
        var status = ModuleStatus(state: "active", file: file, since: created)
        status.name = name
        status.version = version.description
        status.generation = number
        status.targets = manifest?.targets.map(\.name) ?? []
        status.interceptors = manifest?.interceptors.map(\.name) ?? []
        return status
    }
}
