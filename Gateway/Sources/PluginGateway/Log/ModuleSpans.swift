import PluginABI
import PluginHost
import Tracing

extension PluginGateway {
    /// Makes a span for each call that a module makes while it serves a call with a trace. The spans are children of
    /// the span of the call that leads to them.
    ///
    /// Has no effect with the tracer that does nothing: interceptors make calls slower.
    func traceModules() {
        guard !(tracer is NoOpTracer) else { return }
        host.intercept(.all, priority: .max) { [tracer] call, next in
            guard call.origin == .local, let trace = call.callContext.trace else { return try next(call) }
            let span = tracer.startAnySpan(
                "\(call.target)/\(call.action)", context: tracer.context(of: trace), ofKind: .internal)
            defer { span.end() }
            span.attributes["plugin.action"] = "\(call.target)/\(call.action)"
            var call = call
            call.callContext.trace = tracer.trace(of: span.context)?.keeping(trace) ?? trace
            do {
                return try next(call)
            } catch {
                if let error = error as? PluginError { span.recordFailure(error) }
                throw error
            }
        }
    }
}
