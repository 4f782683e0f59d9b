import CPluginABI
import Dispatch
public import PluginABI
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
    /// Its `setUp` runs on this thread, before anything can be called; then its `init`, which can refuse, and `didStart`. What a registration takes is never given back, like
    /// the code of a module.
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
        return try dispatcher.change { () throws(PluginError) in
            guard let generation = self.dispatcher.withdraw(name) else { return false }
            if let lifecycle {
                lifecycle.announceStop(to: [generation])
                lifecycle.retire([generation])
            } else {
                self.dispatcher.drain(generation, timeout: self.configuration.hookTimeout)
            }
            return true
        }
    }
}

private let isChanging = DispatchSpecificKey<ObjectIdentifier>()

extension Dispatcher {
    /// Runs a change of the registry's modules on this thread, when no other one runs.
    fileprivate func change<Result: Sendable>(
        _ body: @Sendable () throws(PluginError) -> Result
    ) throws(PluginError) -> Result {
        changes.setSpecific(key: isChanging, value: ObjectIdentifier(self))
        if DispatchQueue.getSpecific(key: isChanging) == ObjectIdentifier(self) {
            throw PluginError(
                .circularWait,
                "Modules are being changed on this very thread: code that a change runs, such as a setUp, cannot "
                    + "register or unregister others.")
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
            try checkConflicts(module, with: table.generations)
            let generation = Generation(
                module, dispatcher: self, configuration: configuration(module.manifest.name))
            try loader.during(.activation, module.staged) { () throws(PluginError) in
                try generation.activate(timeout: hookTimeout)
            }
            registry.publish((table.generations + [generation]).inOrder)
            do throws(PluginError) {
                try generation.beginHook(.`init`, timeout: hookTimeout)?.wait()
            } catch {
                registry.publish(registry.table.generations.filter { $0 !== generation })
                drain(generation, timeout: hookTimeout)
                throw error
            }
            do throws(PluginError) {
                try generation.beginHook(.didStart, timeout: hookTimeout)?.wait()
            } catch {
                log(error, of: generation)
            }
            return generation.programStatus
        }
    }

    /// Takes a module of the program out of the table.
    fileprivate func withdraw(_ name: String) -> Generation? {
        let generations = registry.table.generations
        guard let generation = generations.first(where: { $0.isInProgram && $0.name == name }) else { return nil }
        registry.publish(generations.filter { $0 !== generation })
        return generation
    }

    /// Tears a module down when it is not used any more.
    fileprivate func drain(_ generation: Generation, timeout: Duration) {
        guard generation.isDrained else {
            return changes.asyncAfter(deadline: .now() + .milliseconds(20)) {
                self.drain(generation, timeout: timeout)
            }
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
                if let generation = withdraw(generation.name) { drain(generation, timeout: .seconds(5)) }
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
        return status
    }
}
