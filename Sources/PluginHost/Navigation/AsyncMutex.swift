import PluginABI
import Synchronization

/// A mutex that lets in one task at a time, in the order in which they arrive, without blocking a thread.
final class AsyncMutex: Sendable {
    private struct State {
        var isTaken = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())
    /// The mutexes that this task has acquired.
    @TaskLocal private static var taken: [ObjectIdentifier] = []

    /// Runs `body` while no other task is inside.
    ///
    /// - Throws: `circularWait` if this task is already inside and would wait for itself; the error of `body`.
    func take<Result: Sendable>(
        _ body: @Sendable () async throws(PluginError) -> Result
    ) async throws(PluginError) -> Result {
        try refuseInside()
        await enter()
        defer { leave() }
        let outcome = await Self.$taken.withValue(Self.taken + [ObjectIdentifier(self)]) { () async in
            do throws(PluginError) { return Swift.Result<Result, PluginError>.success(try await body()) } catch {
                return .failure(error)
            }
        }
        return try outcome.get()
    }

    /// - Throws: `circularWait` if this task is inside.
    func refuseInside() throws(PluginError) {
        guard Self.taken.contains(ObjectIdentifier(self)) else { return }
        throw PluginError(
            .circularWait,
            "The presenter is showing another page at this moment. While it does, it cannot open or close pages, or wait "
                + "for code that does.")
    }

    private func enter() async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                guard state.isTaken else {
                    state.isTaken = true
                    return true
                }
                state.waiting.append(continuation)
                return false
            }
            if isFree { continuation.resume() }
        }
    }

    private func leave() {
        let next = state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.isTaken = false
                return CheckedContinuation<Void, Never>?.none
            }
            return state.waiting.removeFirst()
        }
        next?.resume()
    }
}
