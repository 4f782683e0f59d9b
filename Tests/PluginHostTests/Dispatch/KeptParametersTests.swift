import CPluginHost
import PluginABI
import Synchronization
import Testing

@testable import PluginHost
@testable import TestSupport

/// The dictionaries in which the program's handlers receive the parameters of events, and which threads keep.
@Suite(.timeLimit(.minutes(30))) struct KeptParametersTests {
    @Test func `What a handler has kept does not change with later events`() throws {
        let host = try TestHost([]).host
        let got = Mutex<[[String: Value]]>([])
        let subscription = host.on("sold") { parameters in got.withLock { $0.append(parameters) } }
        for count in 0..<5 { try host.post("sold", ["item": "tea", "count": count]) }
        #expect(got.withLock { $0 } == (0..<5).map { ["item": "tea", "count": .int($0)] })
        subscription.cancel()
    }

    @Test func `An event that is posted while another one is handled has parameters of its own`() throws {
        let host = try TestHost([]).host
        let got = Mutex<[Value?]>([])
        let subscription = host.on("counted") { [weak host] parameters in
            let rest = parameters["rest"]?.int ?? 0
            if rest > 0 { try host?.post("counted", ["rest": rest - 1]) }
            got.withLock { $0.append(parameters["rest"]) }
        }
        for _ in 0..<3 { #expect(try host.post("counted", ["rest": 3]).failures.isEmpty) }
        #expect(got.withLock { $0 } == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3])
        subscription.cancel()
    }

    @Test func `A handler that fails leaves nothing behind for the next event`() throws {
        let host = try TestHost([]).host
        let got = Mutex<[[String: Value]]>([])
        let subscription = host.on("sold") { parameters in
            got.withLock { $0.append(parameters) }
            throw PluginError("full", "No space left.")
        }
        for count in 0..<4 { #expect(try host.post("sold", ["count": count]).failures.count == 1) }
        #expect(got.withLock { $0 } == (0..<4).map { ["count": .int($0)] })
        subscription.cancel()
    }

    /// Parameters that differ in their names, in the order and in the number of them.
    private static let various: [[(String, Value)]] = [
        [], [("a", 1)], [("b", 2)], [("a", 1), ("b", 2)], [("b", 2), ("a", 1)], [("ab", 3)], [("a", 1), ("c", 2)],
        [("a", 1), ("a", 2)], [("caf\u{E9}", 1), ("cafe\u{301}", 2)], [(String(repeating: "n", count: 300), 1)],
        [("12345678", 1), ("12345678901", 2)], [("12345678", 1), ("12345678902", 2)],
        (0..<8).map { ("p\($0)", .int($0)) }, (0..<9).map { ("p\($0)", .int($0)) },
        [("text", .string(String(repeating: "t", count: 100))), ("map", ["list": [1, "two", nil]])],
    ]

    @Test func `Events with any parameters in turn get their own`() throws {
        let host = try TestHost([]).host
        let got = Mutex<[String: Value]>([:])
        // More events than a thread has places.
        let events = (0..<20).map { "event\($0)" }
        let subscriptions = events.map { event in host.on(event) { parameters in got.withLock { $0 = parameters } } }
        for round in 0..<(3 * Self.various.count * Self.various.count) {
            // Each pair, one after the other and repeated.
            let index = round / Self.various.count % Self.various.count
            let entries = Self.various[round % 3 == 0 ? index : round % Self.various.count]
            try host.post(events[round % 4 == 0 ? 0 : round % events.count], Parameters(entries))
            #expect(got.withLock { $0 } == Dictionary(entries, uniquingKeysWith: { $1 }))
        }
        for subscription in subscriptions { subscription.cancel() }
    }

    /// The names of the parameters that this thread keeps.
    private var kept: [Set<String>] {
        guard let pointer = ThreadContext.current?.pointer else { return [] }
        return (0..<UInt32(PLUGIN_HOST_PARAMETERS)).compactMap { number in
            let kept = plugin_host_parameters_of(pointer, number)!.pointee.kept
            return kept.map { Set($0.assumingMemoryBound(to: KeptParameters.self).pointee.values.keys) }
        }
    }

    @Test func `Parameters are kept if they come twice in a row, and give way only to others that do`() throws {
        let host = try TestHost([]).host
        let subscription = host.on("sold") { _ in }
        let (first, other): (Parameters, Parameters) = (["keptFirst": 1], ["keptOther": 2])
        try host.post("sold", first)
        #expect(!kept.contains(["keptFirst"]))
        try host.post("sold", first)
        #expect(kept.contains(["keptFirst"]))
        for parameters in [other, first, other, first, [:], [:], other, [:]] { try host.post("sold", parameters) }
        #expect(kept.contains(["keptFirst"]) && !kept.contains(["keptOther"]) && !kept.contains([]))
        for _ in 0..<2 { try host.post("sold", other) }
        #expect(!kept.contains(["keptFirst"]) && kept.contains(["keptOther"]))
        subscription.cancel()
    }

    @Test func `Nothing keeps what a parameter refers to when the event is over`() throws {
        let host = try TestHost([]).host
        final class Content: Sendable {}
        weak var freed: Content?
        let subscription = host.on("offered") { _ in }
        do {
            let content = Content()
            freed = content
            let callback = host.callback { _ in
                withExtendedLifetime(content) { .null }
            }
            for _ in 0..<3 { try host.post("offered", ["callback": callback]) }
        }
        #expect(freed == nil)
        subscription.cancel()
    }

    @Test func `Threads that post the same event do not share parameters`() async throws {
        let host = try TestHost([]).host
        let event = "counted"
        let wrong = Mutex(0)
        let subscription = host.on(event) { parameters in
            if parameters["thread"] != parameters["again"] { wrong.withLock { $0 += 1 } }
        }
        _ = try await onThreads(4) { number in
            for round in 0..<1_000 {
                try host.post(event, ["thread": number * 1_000 + round, "again": number * 1_000 + round])
            }
        }
        #expect(wrong.withLock { $0 } == 0)
        subscription.cancel()
    }
}
