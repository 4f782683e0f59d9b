import PluginABI
import Testing

/// How a program reads and writes the headers `traceparent` and `tracestate`.
@Suite struct TraceContextTests {
    @Test(arguments: [
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000001-0000000000000001-00",
        "00-ffffffffffffffffffffffffffffffff-ffffffffffffffff-ff",
    ])
    func `A traceparent is read and written`(text: String) throws {
        let trace = try #require(TraceContext(traceparent: text))
        #expect(trace.traceparent == text && trace.isSampled == (trace.flags & 1 == 1))
        #expect(trace.traceID.bytes.count == 16 && trace.spanID.bytes.count == 8)
    }

    @Test func `Of later versions, what this one knows is read`() throws {
        let text = "-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"
        #expect(TraceContext(traceparent: "01\(text)03")?.traceparent == "00\(text)01")
        #expect(TraceContext(traceparent: "cc\(text)01-what-comes")?.traceparent == "00\(text)01")
        #expect(TraceContext(traceparent: "00\(text)01-what-comes") == nil)
        #expect(TraceContext(traceparent: "01\(text)01.what") == nil)
    }

    @Test(arguments: [
        "", "00", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x",
        "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319ü-b7ad6b7169203331-01",
    ])
    func `Text that is not a traceparent is refused`(text: String) { #expect(TraceContext(traceparent: text) == nil) }

    @Test func `A tracestate is bounded`() {
        #expect(TraceContext(tracestate: "a=1,b=2").tracestate == "a=1,b=2")
        #expect(TraceContext(tracestate: "a=ü").tracestate == "" && TraceContext(tracestate: "a\n").tracestate == "")
        let entry = "k=" + String(repeating: "v", count: 200)
        #expect(
            TraceContext(tracestate: [entry, entry, entry].joined(separator: ",")).tracestate == "\(entry),\(entry)")
        #expect(TraceContext(tracestate: String(repeating: "v", count: 513)).tracestate == "")
    }

    @Test func `A new trace has a new number, which the spans within it keep`() {
        let (one, other) = (TraceContext(isSampled: true), TraceContext())
        #expect(one.traceID != other.traceID && one.isSampled && !other.isSampled)
        let span = TraceContext.SpanID.random()
        #expect(one.within(span).traceID == one.traceID && one.within(span).spanID == span)
        #expect(TraceContext.TraceID(0, 0) == nil && TraceContext.SpanID(0) == nil)
    }
}
