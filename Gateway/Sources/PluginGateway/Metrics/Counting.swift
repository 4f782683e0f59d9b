import CoreMetrics
import Hummingbird
import PluginABI
import PluginHost
import Synchronization

extension PluginGateway {
    /// Counts a call that is over. Names of actions come from what is declared, so their number is bounded by the
    /// modules, and by the limit of the registry.
    func count(_ call: GatewayCall, _ problem: Problem?, since start: ContinuousClock.Instant) {
        let isKnown = call.module != nil
        let names = [("module", call.module ?? ""), ("action", isKnown ? call.action ?? "" : "")]
        let code = problem.map { Problem.statuses[$0.error.code] == nil ? "module" : $0.error.code.rawValue } ?? "ok"
        Counter(label: "gateway_calls_total", dimensions: names + [("code", code)], factory: metrics).increment()
        let duration = ContinuousClock.now - start
        CoreMetrics.Timer(label: "gateway_call_seconds", dimensions: names, factory: metrics)
            .recordNanoseconds(Int64(duration / .nanoseconds(1)))
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
