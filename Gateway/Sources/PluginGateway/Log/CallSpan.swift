import HTTPTypes
import Hummingbird
import PluginABI
import PluginHost
import Tracing

extension PluginGateway {
    /// Runs a call in a span, which continues the trace of the request's headers (`traceparent`, as far as the tracer
    /// knows it). Code of the program that runs in the call, such as an interceptor, finds the span in
    /// `ServiceContext.current`; modules find the trace and the caller in the call context that `body` gets.
    func traced<Success: Sendable>(
        _ call: GatewayCall, _ request: ReceivedRequest, _ body: (CallContext) async throws(Problem) -> Success
    ) async throws(Problem) -> Success {
        var context = ServiceContext.current ?? .topLevel
        tracer.extract(request.headers, into: &context, using: FieldExtractor())
        let span = tracer.startAnySpan(call.destination.countedAction, context: context, ofKind: .server)
        defer { span.end() }
        span.attributes["http.request.method"] = request.method.rawValue
        if let module = call.destination.module { span.attributes["plugin.module"] = module }
        span.attributes["plugin.action"] = call.destination.countedAction
        // Without a tracer for W3C traces, modules get the trace as it has come.
        let given = TraceContext(request)
        let trace = tracer.trace(of: span.context)?.keeping(given) ?? given
        let callContext = CallContext(trace: trace, caller: call.client.name)
        let result: Result<Success, Problem> = await ServiceContext.withValue(span.context) {
            do throws(Problem) { return .success(try await body(callContext)) } catch { return .failure(error) }
        }
        switch result {
        case .success(let success):
            span.attributes["http.response.status_code"] = HTTPResponse.Status.ok.code
            return success
        case .failure(let problem):
            span.attributes["http.response.status_code"] = problem.status.code
            span.recordFailure(problem.error)
            if problem.status.code >= 500 { span.setStatus(SpanStatus(code: .error, message: problem.error.message)) }
            throw problem
        }
    }
}

extension Span {
    func recordFailure(_ error: PluginError) {
        attributes["error.type"] = error.code.rawValue
        recordError(error)
    }
}

private struct FieldExtractor: Extractor {
    func extract(key: String, from fields: HTTPFields) -> String? {
        HTTPField.Name(key).flatMap { fields[$0] }
    }
}

// MARK: W3C traces

extension TraceContext {
    /// The trace of a request; `nil` if it has none.
    init?(_ request: ReceivedRequest) {
        guard let parent = request.header(.traceparent) else { return nil }
        self.init(traceparent: parent, tracestate: request.headers[values: .tracestate].joined(separator: ","))
    }
}

extension TraceContext {
    /// Returns this context with the entries that its tracer has not passed on from an earlier context of the same
    /// trace. Other code depends on them: `RemoteModules` detects circular calls by such an entry.
    func keeping(_ earlier: TraceContext?) -> TraceContext {
        guard let earlier, earlier.traceID == traceID, !earlier.tracestate.isEmpty else { return self }
        func key(_ entry: Substring) -> Substring { entry.prefix { $0 != "=" }.trimmingSpaces }
        let present = Set(tracestate.split(separator: ",").map(key))
        let lost = earlier.tracestate.split(separator: ",").filter { !present.contains(key($0)) }
        guard !lost.isEmpty else { return self }
        let own = tracestate.isEmpty ? [] : [tracestate[...]]
        // The maximum number of entries.
        let entries = (own + lost).joined(separator: ",").split(separator: ",").prefix(32)
        return TraceContext(
            traceID: traceID, spanID: spanID, isSampled: isSampled, tracestate: entries.joined(separator: ","))
    }
}

extension HTTPField.Name {
    fileprivate static let traceparent = Self("traceparent")!
    fileprivate static let tracestate = Self("tracestate")!
}

private struct Carrier: Injector, Extractor {
    func inject(_ value: String, forKey key: String, into carrier: inout [String: String]) {
        carrier[key.lowercased()] = value
    }

    func extract(key: String, from carrier: [String: String]) -> String? { carrier[key.lowercased()] }
}

extension Tracer {
    /// Returns the trace of a context, for calls that are made in it; `nil` if the tracer has no W3C traces.
    func trace(of context: ServiceContext) -> TraceContext? {
        var headers: [String: String] = [:]
        inject(context, into: &headers, using: Carrier())
        return headers["traceparent"].flatMap {
            TraceContext(traceparent: $0, tracestate: headers["tracestate"] ?? "")
        }
    }

    /// Returns a context that continues a trace.
    func context(of trace: TraceContext) -> ServiceContext {
        var context = ServiceContext.topLevel
        let headers = ["traceparent": trace.traceparent, "tracestate": trace.tracestate]
        extract(headers, into: &context, using: Carrier())
        return context
    }
}
