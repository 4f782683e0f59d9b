import CoreMetrics
import Hummingbird
import PluginABI
import PluginHost
import Synchronization

extension PluginGateway {
    /// Counts a call that is over. Only names of declared actions are used, so their number is bounded by the modules,
    /// and by the limit of the registry.
    func count(_ call: GatewayCall, _ problem: Problem?, since start: ContinuousClock.Instant) {
        let isKnown = call.module != nil
        let code = problem.map { Problem.statuses[$0.error.code] == nil ? "module" : $0.error.code.rawValue } ?? "ok"
        let duration = ContinuousClock.now - start
        meters.of(call.module ?? "", isKnown ? call.action ?? "" : "").count(code, duration)
        if let module = call.module { tallies.add(module, problem, duration) }
        if configuration.page != .off, isKnown, let action = call.action { callTimes.add(action, duration) }
    }

    /// Counts a request that was answered with an error.
    func count(_ problem: Problem) {
        Counter(
            label: "gateway_errors_total", dimensions: [("status", String(problem.status.code))], factory: metrics
        ).increment()
    }

    /// Counts a change of the modules.
    func count(_ event: String) {
        Counter(label: "plugin_changes_total", dimensions: [("event", event)], factory: metrics).increment()
    }

    /// `GET /metrics`.
    func metricsResponse() -> Response {
        func set(_ name: String, _ value: Int, _ dimensions: [(String, String)] = []) {
            Meter(label: name, dimensions: dimensions, factory: metrics).set(value)
        }
        set("gateway_calls_in_flight", admission.counts.total)
        set("gateway_bodies_in_flight", bodies.withLock { $0 })
        set("gateway_unsent_bytes", unsent.count)
        set("gateway_event_streams", events.streamCount)
        set("gateway_ready", isReady ? 1 : 0)
        let generations = host.generations
        for state in GenerationStatus.State.allCases {
            set("plugin_generations", generations.count { $0.state == state }, [("state", state.rawValue)])
        }
        set("plugin_objects_held", generations.reduce(0) { $0 + $1.objects })
        let modules = host.modules
        for state in ModuleStatus.State.allCases {
            set("plugin_modules", modules.count { $0.state == state }, [("state", state.rawValue)])
        }
        set("plugin_restarts", modules.reduce(0) { $0 + $1.restarts })
        return .text(metrics.text, type: "text/plain; version=0.0.4; charset=utf-8")
    }
}

/// The metrics of calls, by module and action. Finding them in the registry by their labels would take longer than
/// many calls do.
final class CallMeters: Sendable {
    private struct Names: Hashable {
        let module: String
        let action: String
    }

    /// The metrics of one action.
    final class Meters: Sendable {
        private let names: [(String, String)]
        private let metrics: PrometheusMetrics
        private let timer: CoreMetrics.Timer
        private let counters = Mutex<[String: Counter]>([:])

        fileprivate init(_ names: [(String, String)], _ metrics: PrometheusMetrics) {
            (self.names, self.metrics) = (names, metrics)
            timer = CoreMetrics.Timer(label: "gateway_call_seconds", dimensions: names, factory: metrics)
        }

        func count(_ code: String, _ duration: Duration) {
            let counter = counters.withLock { counters in
                if let counter = counters[code] { return counter }
                let dimensions = names + [("code", code)]
                let counter = Counter(label: "gateway_calls_total", dimensions: dimensions, factory: metrics)
                counters[code] = counter
                return counter
            }
            counter.increment()
            timer.recordNanoseconds(Int64(duration / .nanoseconds(1)))
        }
    }

    private let metrics: PrometheusMetrics
    private let known = Mutex<[Names: Meters]>([:])

    init(_ metrics: PrometheusMetrics) { self.metrics = metrics }

    /// Returns the metrics of an action. At most as many are kept as there can be time series.
    func of(_ module: String, _ action: String) -> Meters {
        let names = Names(module: module, action: action)
        return known.withLock { known in
            if let meters = known[names] { return meters }
            let meters = Meters([("module", module), ("action", action)], metrics)
            if known.count < metrics.limit { known[names] = meters }
            return meters
        }
    }
}
