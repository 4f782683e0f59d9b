import PluginTestKit
import Testing

/// A gate is closed until it is opened, and lets cancelled tasks pass.
@Suite struct GateTests {
    @Test func `Tasks wait at a closed gate, and pass an open one`() async throws {
        let gate = Gate()
        async let first: Void = gate.pass()
        await gate.arrivals(1)
        gate.open()
        try await first
        try await gate.pass()
        await gate.arrivals(2)
    }

    @Test func `A cancelled task does not wait, whether it was cancelled before or after it arrived`() async {
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
