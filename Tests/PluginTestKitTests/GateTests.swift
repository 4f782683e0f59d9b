import PluginTestKit
import Testing

/// A gate is closed until it is opened, and lets go of whoever is cancelled.
@Suite struct GateTests {
    @Test func `Who comes waits, and who comes later does not`() async throws {
        let gate = Gate()
        async let first: Void = gate.pass()
        await gate.arrivals(1)
        gate.open()
        try await first
        try await gate.pass()
        await gate.arrivals(2)
    }

    @Test func `Who is cancelled waits no longer, whether before or after it has come`() async {
        let gate = Gate()
        let waiting = Task { try await gate.pass() }
        await gate.arrivals(1)
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        let cancelled = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await gate.pass()
        }
        await #expect(throws: CancellationError.self) { try await cancelled.value }
    }
}
