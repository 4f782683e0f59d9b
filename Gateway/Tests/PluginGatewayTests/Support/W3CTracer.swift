import InMemoryTracing
import Tracing

/// A tracer that keeps its spans in memory, and propagates traces as defined by the W3C.
struct W3CTracer: Tracer {
    let memory = InMemoryTracer(
        idGenerator: .init(nextTraceID: { Self.digits(2) }, nextSpanID: { Self.digits(1) }))

    private static func digits(_ words: Int) -> String {
        (0..<words).map { _ in
            let digits = String(UInt64.random(in: 1...UInt64.max), radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    func startSpan<Instant: TracerInstant>(
        _ operationName: String, context: @autoclosure () -> ServiceContext, ofKind kind: SpanKind,
        at instant: @autoclosure () -> Instant, function: String, file fileID: String, line: UInt
    ) -> InMemorySpan {
        memory.startSpan(
            operationName, context: context(), ofKind: kind, at: instant(), function: function, file: fileID, line: line
        )
    }

    func forceFlush() {}

    func extract<Carrier, Extract: Extractor>(
        _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
    ) where Extract.Carrier == Carrier {
        let parts = (extractor.extract(key: "traceparent", from: carrier) ?? "").split(separator: "-").map(String.init)
        guard parts.count == 4 else { return }
        let ids = [InMemoryTracer.traceIDKey: parts[1], InMemoryTracer.spanIDKey: parts[2]]
        memory.extract(ids, into: &context, using: Entries())
    }

    func inject<Carrier, Inject: Injector>(
        _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
    ) where Inject.Carrier == Carrier {
        var ids: [String: String] = [:]
        memory.inject(context, into: &ids, using: Entries())
        guard let trace = ids[InMemoryTracer.traceIDKey], let span = ids[InMemoryTracer.spanIDKey] else { return }
        injector.inject("00-\(trace)-\(span)-01", forKey: "traceparent", into: &carrier)
    }

    private struct Entries: Extractor, Injector {
        func extract(key: String, from carrier: [String: String]) -> String? { carrier[key] }
        func inject(_ value: String, forKey key: String, into carrier: inout [String: String]) { carrier[key] = value }
    }
}
