import FoundationEssentials
import PluginABI
import PluginFile
import Synchronization

/// The modules that are being started: those of the current change, and those without which earlier changes continued.
struct ModuleStarts: Sendable {
    /// The file whose constructors or entry function are running.
    var opened: OpenedFile?
    /// The modules that the current change starts.
    var batch: Set<ObjectIdentifier> = []
    /// The modules with a hook that has not returned in time.
    var slow: [ObjectIdentifier: SlowStart] = [:]
    /// The modules that are set up, but require one of ``slow``.
    var parked: [ObjectIdentifier: Newcomer] = [:]
    /// The modules from ``slow`` and ``parked`` whose starts the current change continues.
    var resumed: [Generation] = []
    /// The starts that wait for a hook which has not returned in time.
    var delayed: [StartRequest] = []

    struct OpenedFile: Sendable {
        let path: String
        let since = Date()

        func status(_ before: ModuleStatus?) -> ModuleStatus {
            var status = before ?? ModuleStatus(.starting, file: path, since: since, nil)
            if status.state != .active { status.state = .starting }
            status.note =
                "its constructors or its entry function have been running for \(Int(-since.timeIntervalSinceNow)) s"
            return status
        }
    }

    /// The reasons why the modules in ``slow`` cannot be served yet.
    var reasons: [ObjectIdentifier: PluginError] {
        slow.isEmpty ? [:] : slow.filter { $0.value.outcome == nil }.mapValues(\.reason)
    }

    /// The modules that are still starting, and without which earlier changes continued.
    var going: [Newcomer] { slow.values.map(\.newcomer) + parked.values }

    /// Whether the module in the file is being started.
    func contains(_ record: FileRecord) -> Bool {
        record.module.map { batch.contains(ObjectIdentifier($0)) } == true
    }

    /// Returns what is running in the module of a file, and for how long; `nil` if it is not in ``slow``.
    func note(on record: FileRecord) -> String? {
        record.module.flatMap { slow[ObjectIdentifier($0)]?.note }
    }
}

/// The start of a module whose hook has not returned in time. The other modules start without it.
///
/// The properties are changed only by work on the queue of changes, hence `@unchecked Sendable`; other threads read
/// only the constant ones.
final class SlowStart: @unchecked Sendable {
    /// The module's generation, as it will be when the hook has returned successfully. It holds no hand-over.
    let newcomer: Newcomer
    /// The name of the hook.
    let hook: String
    /// Whether the hook is one of the module that is being replaced; no hook of the new module is running.
    let isOfPredecessor: Bool
    /// The time when the hook was called, in `CLOCK_MONOTONIC` nanoseconds.
    private let begin: Int64
    /// The result of the hook; `nil` while it runs.
    var outcome: Result<Void, PluginError>?
    /// Whether the module is to be torn down when the hook has returned.
    private(set) var isAbandoned = false

    init(_ newcomer: Newcomer, _ hook: String, since begin: Int64, isOfPredecessor: Bool = false) {
        (self.newcomer, self.hook, self.begin, self.isOfPredecessor) = (newcomer, hook, begin, isOfPredecessor)
    }

    /// The reason why the module cannot be served yet. It is the same as long as the hook runs.
    var reason: PluginError {
        PluginError(
            .moduleUnavailable, "its \(hook) has not returned. The module is served once it has returned.")
    }

    var note: String { "\(hook) has been running for \((monotonicNow() - begin) / 1_000_000_000) s" }

    /// Lets the module be torn down when the hook has returned, since it is no longer wanted. The process of an
    /// isolated module is ended.
    func abandon(because reason: String) {
        isAbandoned = true
        newcomer.generation.isEnding.store(true, ordering: .sequentiallyConsistent)
        newcomer.generation.log(
            .warning,
            "\(reason) while its \(hook) was running. It is torn down when that returns.")
        newcomer.generation.module?.process?.end()
    }
}

extension ChangeContext {
    /// Continues without a module whose hook has not returned in time.
    ///
    /// - Parameter time: How long the change has waited for the hook.
    /// - Returns: What to do with the hook's result, on any thread.
    func leave(_ start: SlowStart, after time: Duration) -> @Sendable (Result<Void, PluginError>) -> Void {
        starts.slow[ObjectIdentifier(start.newcomer.candidate.module)] = start
        start.newcomer.generation.isLate.store(true, ordering: .relaxed)
        showLateModules()
        start.newcomer.generation.log(
            .warning,
            "is still starting: its \(start.hook) has not returned within \(time). The other "
                + "modules start without it; it joins them when the hook returns.")
        return { [weak self] outcome in self?.later { $0.take(outcome, of: start) } }
    }

    /// Keeps a newcomer as it is if it requires a module whose hook has not returned. Returns whether it does.
    func park(_ newcomer: Newcomer, _ plan: Plan) -> Bool {
        let candidate = newcomer.candidate
        guard plan.isStarting(candidate.path), folders.records[candidate.path]?.module === candidate.module
        else { return false }
        newcomer.generation.isLate.store(true, ordering: .relaxed)
        starts.parked[ObjectIdentifier(candidate.module)] = newcomer
        return true
    }

    /// Lets the modules that are still starting after the end of their change find each other, and themselves.
    func showLateModules() {
        let late = (starts.going.map(\.generation) + starts.resumed).filter { $0.isSetUp.load(ordering: .acquiring) }
        registry.setLate(late.inOrder) { $0.inOrder }
    }

    /// Starts a module like a newcomer, now that its hook has returned.
    private func take(_ outcome: Result<Void, PluginError>, of start: SlowStart) {
        guard !start.isAbandoned else { return Drain(context: self).retire([start.newcomer.generation]) }
        start.outcome = outcome
        FolderUpdate(self).run([])
    }

    /// Ends the starts that the shutdown does not wait for, before the modules that serve are torn down.
    func endStarts() {
        for start in starts.slow.values where !start.isOfPredecessor {
            start.newcomer.generation.isEnding.store(true, ordering: .sequentiallyConsistent)
            start.newcomer.generation.log(
                .warning, "was still starting when the host stopped (\(start.note)), and was not torn down.")
        }
        let idle = starts.slow.values.filter(\.isOfPredecessor).map(\.newcomer) + starts.parked.values
        for generation in idle.map(\.generation).inOrder.reversed() { Drain(context: self).tearDownAtEnd(generation) }
        starts = ModuleStarts()
        showLateModules()
    }
}
