import PluginABI
import Synchronization
import Testing

@testable import PluginHostCLI

/// Which calls of the control socket run, which wait, and which are refused. Clients are numbers.
@Suite(.timeLimit(.minutes(10))) struct CallSlotsTests {
    /// The outcomes of the calls that requested a slot, in order.
    private final class Outcomes: Sendable {
        private let texts = Mutex<[String]>([])

        var all: [String] { texts.withLock { $0 } }

        func add(_ text: String) { texts.withLock { $0.append(text) } }

        /// The outcomes, as soon as there are at least `count`, or after a minute.
        func first(_ count: Int) async throws -> [String] {
            for _ in 0..<6000 where all.count < count { try await Task.sleep(for: .milliseconds(10)) }
            return all
        }
    }

    private let outcomes = Outcomes()

    private func slots(shared: Int, waiting: Int = 256, patience: Duration = .seconds(600)) -> CallSlots {
        CallSlots(.init(shared: shared, waiting: waiting, patience: patience))
    }

    /// Requests a slot. If none is free, the call is in the queue when the function returns.
    private func ask(_ slots: CallSlots, _ client: Int, _ name: String) {
        Task.immediate { [outcomes] in
            do throws(PluginError) {
                try await slots.enter(client)
                outcomes.add(name)
            } catch {
                outcomes.add("\(name) is \(error.code)")
            }
        }
    }

    @Test func `The first call of a client runs, however many calls of other clients run`() {
        let slots = slots(shared: 2)
        for client in 1...2 { for _ in 0..<2 { ask(slots, client, "\(client)") } }
        for client in 3...100 { ask(slots, client, "\(client)") }
        #expect(outcomes.all == ["1", "1", "2", "2"] + (3...100).map { "\($0)" })
    }

    @Test func `One client gets at most half of the shared slots`() async throws {
        let slots = slots(shared: 4, waiting: 1)
        for _ in 0..<3 { ask(slots, 1, "runs") }
        ask(slots, 1, "waits")
        ask(slots, 1, "third")
        #expect(outcomes.all == ["runs", "runs", "runs", "third is overloaded"])
        for _ in 0..<3 { ask(slots, 2, "other") }
        #expect(outcomes.all.suffix(3) == ["other", "other", "other"])
        slots.leave(1)
        #expect(try await outcomes.first(8).last == "waits")
    }

    @Test func `Waiting calls get slots in turn among their clients`() async throws {
        let slots = slots(shared: 4)
        for client in 1...2 { for _ in 0..<3 { ask(slots, client, "runs") } }
        for client in 3...4 { ask(slots, client, "runs") }
        for name in ["3a", "3b"] { ask(slots, 3, name) }
        for name in ["4a", "4b"] { ask(slots, 4, name) }
        #expect(outcomes.all == Array(repeating: "runs", count: 8))
        for (count, name) in [(9, "3a"), (10, "4a"), (11, "3b"), (12, "4b")] {
            slots.leave(count % 2 + 1)
            #expect(try await outcomes.first(count).last == name)
        }
    }

    @Test func `When too many calls wait, one more is refused at once`() async throws {
        let slots = slots(shared: 1, waiting: 2)
        for name in ["runs", "runs", "waits", "waits", "refused"] { ask(slots, 1, name) }
        #expect(outcomes.all == ["runs", "runs", "refused is overloaded"])
        slots.leave(1)
        slots.leave(1)
        #expect(try await outcomes.first(5).suffix(2) == ["waits", "waits"])
    }

    @Test func `A call that has waited too long is refused, and does not block the next one`() async throws {
        let slots = slots(shared: 1, waiting: 1, patience: .milliseconds(10))
        for name in ["runs", "runs", "waits"] { ask(slots, 1, name) }
        #expect(try await outcomes.first(3) == ["runs", "runs", "waits is overloaded"])
        slots.leave(1)
        ask(slots, 1, "next")
        #expect(outcomes.all.last == "next")
    }

    @Test func `Calls of disconnected clients take shared slots, and leave other clients their own`() async throws {
        let slots = slots(shared: 2, waiting: 0)
        for client in 1...3 {
            ask(slots, client, "gone")
            slots.clientHasGone(client)
        }
        ask(slots, 4, "own")
        ask(slots, 4, "second")
        #expect(outcomes.all == ["gone", "gone", "gone", "own", "second is overloaded"])
        for client in 1...3 { slots.leave(client) }
        ask(slots, 4, "third")
        #expect(outcomes.all.last == "third")
    }

    @Test func `Calls of disconnected clients are limited, and the error says so`() async throws {
        var limits = CallSlots.Limits(shared: 1, waiting: 0)
        limits.orphans = 2
        let slots = CallSlots(limits)
        for client in 1...2 {
            try await slots.enter(client)
            slots.clientHasGone(client)
        }
        let error = await #expect(throws: PluginError.self) { try await slots.enter(3) }
        #expect(error?.code == .overloaded && error?.message.contains("whose clients have gone") == true)
        slots.leave(1)
        try await slots.enter(3)
    }

    @Test func `Waiting calls of a client that disconnects are refused`() async throws {
        let slots = slots(shared: 1)
        ask(slots, 1, "runs")
        ask(slots, 1, "second")
        ask(slots, 1, "waits")
        slots.clientHasGone(1)
        #expect(try await outcomes.first(3) == ["runs", "second", "waits is overloaded"])
    }
}
