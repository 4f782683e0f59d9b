import PluginABI
import PluginFile

/// What is known of the modules that may be put to rest: since when they have been idle.
struct IdleModules {
    private struct Idle {
        /// See ``ModuleProcess/traffic``.
        let traffic: UInt64
        /// The time when this traffic was first found, in `CLOCK_MONOTONIC` nanoseconds.
        let since: Int64
    }

    /// The generations that were idle when they were last examined, by number.
    private var idle: [Int: Idle] = [:]
    /// Whether they will be examined again.
    var isScheduled = false

    /// Forgets all generations that do not have these numbers.
    mutating func forget(besides numbers: Set<Int>) { idle = idle.filter { numbers.contains($0.key) } }

    /// Examines a generation.
    ///
    /// - Parameters:
    ///   - calls: The running calls of all modules.
    ///   - now: The time, in `CLOCK_MONOTONIC` nanoseconds.
    /// - Returns: For how long it is known to have been idle, in nanoseconds.
    mutating func examine(_ generation: Generation, _ calls: [CallRecord], now: Int64) -> Int64 {
        // A call that begins after this is counted when the generation is examined again, or keeps it from ending.
        guard let traffic = generation.module?.process?.traffic, generation.isUnused(calls) else {
            idle[generation.number] = nil
            return 0
        }
        if let before = idle[generation.number], before.traffic == traffic { return now - before.since }
        idle[generation.number] = Idle(traffic: traffic, since: now)
        return 0
    }
}

extension Generation {
    /// Whether an isolated module neither runs nor waits for calls, none of its objects is held, and it holds none.
    ///
    /// - Parameter calls: The running calls of all modules.
    fileprivate func isUnused(_ calls: [CallRecord]) -> Bool {
        guard let process = module?.process, process.ending == nil, !process.awaitsRestart, !process.holdsObjects
        else { return false }
        return isDrained && !calls.contains { $0.isMade(by: .passUnretained(self)) }
    }
}

extension ChangeContext {
    /// Begins to examine modules if any of these may be put to rest.
    func restLater(_ started: [Served]) {
        if configuration.isolation.restAfter != nil, started.contains(where: mayRestAgain) { examineLater() }
    }

    private func examineLater() {
        guard let time = configuration.isolation.restAfter, !idle.isScheduled else { return }
        idle.isScheduled = true
        later(after: time / 4) { context in
            context.idle.isScheduled = false
            context.restIdle(for: time)
        }
    }

    /// Whether a module that serves may be put to rest when it is idle.
    private func mayRestAgain(_ served: Served) -> Bool {
        guard served.module.isOfFile, let process = served.module.process, !process.isDebugged else { return false }
        return served.module.manifest.isStateless && configuration.startsWhenNeeded(served.module.outline)
    }

    /// Puts to rest the modules that have been idle for this time.
    private func restIdle(for time: Duration) {
        let modules = serving.modules.values.filter(mayRestAgain)
        idle.forget(besides: Set(modules.map(\.generation.number)))
        guard !modules.isEmpty else { return }
        let (calls, now) = (runningCalls(), monotonicNow())
        let due = modules.filter { idle.examine($0.generation, calls, now: now) >= time.nanoseconds }
        rest(due, "has been idle for \(time)")
        examineLater()
    }

    /// Registers modules instead of letting them serve, except those that cannot be registered or that others need. Their
    /// generations drain like those of removed modules.
    ///
    /// - Parameter reason: The reason for the log.
    func rest(_ modules: [Served], _ reason: String) {
        var resting = modules.compactMap { served in recordAtRest(of: served).map { (served: served, record: $0) } }
        let needed = names(neededBesides: Set(resting.map(\.served.name)))
        resting.removeAll { needed.contains($0.served.name) }
        guard !resting.isEmpty else { return }
        resting.sort { $0.served.generation.number < $1.served.generation.number }
        patience.renew()
        for (served, record) in resting {
            folders.put(record)
            served.generation.log(.info, "\(reason), and is put to rest. It starts when it is needed.")
        }
        let plan = Plan(resting: resting.map { ($0.served, $0.record.module!) })
        Publication(self, plan, [:]).make()
        holdFilesLater()
    }

    /// Returns the record of a module's file in which the module is not open. `nil` if the module cannot be registered:
    /// its file has changed or is gone, or another version is being started.
    private func recordAtRest(of served: Served) -> FileRecord? {
        guard let record = folders.records[served.path], record.module === served.module, record.verdict == .serves,
            let identity = record.identity, FileIdentity(path: served.path) == identity,
            !starts.going.contains(where: { $0.generation.name == served.name }),
            let known = registeredModule(for: served.module, identity)
        else { return nil }
        return record.with(.module(.init(module: known, verdict: .serves)))
    }

    /// Returns what is known of an open module when it is not open.
    private func registeredModule(for module: LoadedModule, _ identity: FileIdentity) -> LoadedModule? {
        guard let manifest = KnownManifest(KnownText(module.manifestText), abiMinor: module.abiMinor) else {
            return nil
        }
        let file = StagedFile(
            path: "", original: module.file, identity: identity, digest: module.staged.digest,
            size: module.staged.size, image: module.staged.image, folder: nil, libraries: module.staged.libraries)
        let known = LoadedModule(
            known: file, toolchain: module.toolchain, abiMinor: module.abiMinor, manifest: manifest,
            routes: module.routes, program: calls.program)
        known.takeOver(module)
        return known.registration === module.registration ? known : nil
    }

    /// Returns those of the names whose modules must serve: those of interceptors in effect, and of modules that others
    /// require which serve.
    private func names(neededBesides names: Set<String>) -> Set<String> {
        var needed = Set(registry.table.interception?.entries.compactMap(\.rule?.module) ?? []).intersection(names)
        var open = serving.all.filter { !names.contains($0.name) || needed.contains($0.name) }
        while let next = open.popLast() {
            for requirement in next.module.outline.requirements {
                for name in names where !needed.contains(name) {
                    guard let served = serving.modules[name], served.module.outline.provides(requirement) else {
                        continue
                    }
                    needed.insert(name)
                    open.append(served)
                }
            }
        }
        return needed
    }
}
