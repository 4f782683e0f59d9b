import CoreMetrics
import Hummingbird
import PluginABI
import PluginHost
import Synchronization

extension PluginGateway {
    /// Counts a request that was answered with an error.
    func count(_ problem: Problem) {
        Counter(
            label: "gateway_errors_total", dimensions: [("status", String(problem.status.code))], factory: metrics
        ).increment()
    }

    /// Counts a change of the modules, after which calls are counted anew where necessary.
    func count(_ event: String) {
        countedActions.invalidate()
        Counter(label: "plugin_changes_total", dimensions: [("event", event)], factory: metrics).increment()
    }

    /// `GET /metrics`.
    func metricsResponse() -> Response {
        func set(_ name: String, _ value: Int, _ dimensions: [(String, String)] = []) {
            Meter(label: name, dimensions: dimensions, factory: metrics).set(value)
        }
        set("gateway_calls_in_flight", admission.inFlight)
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

/// The metrics of the calls of one action. Finding them in the registry by their labels would take longer than many
/// calls do.
final class CallMeters: Sendable {
    private let names: [(String, String)]
    private let metrics: PrometheusMetrics
    private let timer: CoreMetrics.Timer
    private let counters = Mutex(Counters())

    private struct Counters {
        /// The calls without an error.
        var succeeded: Counter?
        /// Those with an error, by its code.
        var failed: [String: Counter] = [:]
    }

    init(_ names: [(String, String)], _ metrics: PrometheusMetrics) {
        (self.names, self.metrics) = (names, metrics)
        timer = CoreMetrics.Timer(label: "gateway_call_seconds", dimensions: names, factory: metrics)
    }

    /// - Parameter code: The code of the error; `nil` if there was none.
    func count(_ code: String?, _ nanoseconds: Int64) {
        let counter = counters.withLock { counters in
            if let counter = code.map({ counters.failed[$0] }) ?? counters.succeeded { return counter }
            let dimensions = names + [("code", code ?? "ok")]
            let counter = Counter(label: "gateway_calls_total", dimensions: dimensions, factory: metrics)
            if let code { counters.failed[code] = counter } else { counters.succeeded = counter }
            return counter
        }
        counter.increment()
        timer.recordNanoseconds(nanoseconds)
    }
}
