import PluginABI
import PluginHost
import Synchronization

/// All that counts the calls of one action.
final class CountedAction: Sendable {
    /// The calls of the module in flight; `nil` if there is no module.
    let share: Admission.Share?
    let pace = CallPace()
    private let tally: CallTallies.Module?
    private let times: CallTimes.Entry?
    private let meters: CallMeters

    fileprivate init(_ names: CountedActions.Names, _ gateway: PluginGateway) {
        let module = names.module
        share = module.map(gateway.admission.share)
        tally = module.flatMap(gateway.tallies.module)
        times = gateway.configuration.page == .off ? nil : names.action.flatMap(gateway.callTimes.entry)
        meters = CallMeters([("module", module ?? ""), ("action", names.action ?? "")], gateway.metrics)
    }

    /// Notes a call that begins, and returns its number.
    func begin(_ start: ContinuousClock.Instant) -> Int { tally?.begin(start) ?? 0 }

    /// Counts a call that is over.
    func end(_ number: Int, _ problem: Problem?, since start: ContinuousClock.Instant) {
        let code = problem.map { Problem.statuses[$0.error.code] == nil ? "module" : $0.error.code.rawValue }
        let duration = (ContinuousClock.now - start).nanoseconds
        meters.count(code, duration)
        tally?.end(number, problem, duration)
        times?.add(duration)
    }
}

/// What counts the calls of each action. Only names of declared actions are used, so their number is bounded by the
/// modules; at most as many are kept as there can be time series. After a change of the modules, those of modules that
/// have gone, or have been replaced, are forgotten: the pace of calls starts anew.
final class CountedActions: Sendable {
    fileprivate struct Names: Hashable {
        let module: String?
        let action: String?
    }

    private struct State {
        var known: [Names: CountedAction] = [:]
        /// The generations of the modules that serve, by module; 0 for a module that starts when it is needed.
        var generations: [String: Int] = [:]
        /// The change of the modules after which the generations were read.
        var change = -1
    }

    private let state = Mutex(State())
    /// How often the modules have changed.
    private let changes = Atomic(0)
    /// Held while the generations are read.
    private let reading = Mutex(())

    /// Notes that the modules have changed.
    func invalidate() { changes.add(1, ordering: .releasing) }

    /// Whether a change of the modules is the last one.
    func isLast(_ change: Int) -> Bool { changes.load(ordering: .relaxed) == change }

    /// The number of actions that are known.
    var count: Int { state.withLock { $0.known.count } }

    /// - Parameters:
    ///   - module: The module that a call leads to; `nil` if it leads to none.
    ///   - action: Target and action; `nil` if the call leads to none.
    /// - Returns: What counts the calls until the modules change again, and their last change that is considered.
    func of(_ module: String?, _ action: String?, _ gateway: PluginGateway) -> (counted: CountedAction, change: Int) {
        let names = Names(module: module, action: module == nil ? nil : action)
        if !isLast(state.withLock(\.change)) { reading.withLockIfAvailable { _ in update(gateway) } }
        let (known, change) = state.withLock { ($0.known[names], $0.change) }
        if let known { return (known, change) }
        let made = CountedAction(names, gateway)
        return state.withLock { state in
            if let counted = state.known[names] { return (counted, change) }
            if state.known.count < gateway.metrics.limit { state.known[names] = made }
            return (made, change)
        }
    }

    /// Forgets what counts the calls of modules that have gone or have been replaced. Calls in flight keep it.
    private func update(_ gateway: PluginGateway) {
        let change = changes.load(ordering: .acquiring)
        guard state.withLock({ $0.change != change }) else { return }
        var generations: [String: Int] = [:]
        for status in gateway.host.modules where status.state == .active || status.state == .registered {
            if let name = status.name { generations[name] = max(generations[name] ?? 0, status.generation ?? 0) }
        }
        state.withLock { state in
            state.known = state.known.filter { names, _ in
                guard let module = names.module else { return true }
                return generations[module].map { $0 == state.generations[module] } ?? false
            }
            (state.generations, state.change) = (generations, change)
        }
        gateway.admission.forget { generations[$0] != nil }
    }
}
