import PluginABI
import PluginHost
import Synchronization

/// All that counts the calls of one action. It is looked up once for each call.
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
    func begin(_ start: ContinuousClock.Instant) -> UInt64 { tally?.begin(start) ?? 0 }

    /// Counts a call that is over.
    func end(_ number: UInt64, _ problem: Problem?, since start: ContinuousClock.Instant) {
        let code = problem.map { Problem.statuses[$0.error.code] == nil ? "module" : $0.error.code.rawValue } ?? "ok"
        let duration = (ContinuousClock.now - start).nanoseconds
        meters.count(code, duration)
        tally?.end(number, problem, duration)
        times?.add(duration)
    }
}

/// What counts the calls of each action. Only names of declared actions are used, so their number is bounded by the
/// modules; at most as many are kept as there can be time series.
final class CountedActions: Sendable {
    fileprivate struct Names: Hashable {
        let module: String?
        let action: String?
    }

    private let known = Mutex<[Names: CountedAction]>([:])

    /// - Parameters:
    ///   - module: The module that a call leads to; `nil` if it leads to none.
    ///   - action: Target and action; `nil` if the call leads to none.
    func of(_ module: String?, _ action: String?, _ gateway: PluginGateway) -> CountedAction {
        let names = Names(module: module, action: module == nil ? nil : action)
        if let counted = known.withLock({ $0[names] }) { return counted }
        let made = CountedAction(names, gateway)
        return known.withLock { known in
            if let counted = known[names] { return counted }
            if known.count < gateway.metrics.limit { known[names] = made }
            return made
        }
    }
}
