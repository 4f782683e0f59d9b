import HTTPTypes
import Hummingbird
import PluginABI
import Tracing

extension PluginGateway {
    /// Runs a call in a span, which continues the trace of the request's headers (`traceparent`, as far as the tracer knows
    /// it). Code of the program that runs in the call, such as an interceptor, finds the span in `ServiceContext.current`.
    func traced<Success: Sendable>(
        _ call: GatewayCall, _ request: Request, _ body: () async throws(Problem) -> Success
    ) async throws(Problem) -> Success {
        var context = ServiceContext.current ?? .topLevel
        tracer.extract(request.headers, into: &context, using: FieldExtractor())
        let span = tracer.startAnySpan(call.action ?? "call", context: context, ofKind: .server)
        defer { span.end() }
        span.attributes["http.request.method"] = request.method.rawValue
        if let module = call.module { span.attributes["plugin.module"] = module }
        if let action = call.action { span.attributes["plugin.action"] = action }
        let result: Result<Success, Problem> = await ServiceContext.withValue(span.context) {
            do throws(Problem) { return .success(try await body()) } catch { return .failure(error) }
        }
        switch result {
        case .success(let success):
            span.attributes["http.response.status_code"] = HTTPResponse.Status.ok.code
            return success
        case .failure(let problem):
            span.attributes["http.response.status_code"] = problem.status.code
            span.attributes["error.type"] = problem.error.code.rawValue
            span.recordError(problem.error)
            if problem.status.code >= 500 { span.setStatus(SpanStatus(code: .error, message: problem.error.message)) }
            throw problem
        }
    }
}

private struct FieldExtractor: Extractor {
    func extract(key: String, from fields: HTTPFields) -> String? {
        HTTPField.Name(key).flatMap { fields[$0] }
    }
}
