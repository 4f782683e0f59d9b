import PluginABI
import Synchronization

/// The outcome of one call, which arrives once: the first one counts.
final class CallOutcome: Sendable {
    private enum State {
        case running
        case awaited(CheckedContinuation<Result<Value, PluginError>, Never>)
        case over(Result<Value, PluginError>)
    }

    private let state = Mutex(State.running)

    func set(_ outcome: Result<Value, PluginError>) {
        let waiter: CheckedContinuation<Result<Value, PluginError>, Never>? = state.withLock { state in
            switch state {
            case .running: state = .over(outcome)
            case .awaited(let waiter):
                state = .over(outcome)
                return waiter
            case .over: break
            }
            return nil
        }
        waiter?.resume(returning: outcome)
    }

    /// Waits for the outcome. To be called once.
    func get() async -> Result<Value, PluginError> {
        await withCheckedContinuation { waiter in
            let outcome: Result<Value, PluginError>? = state.withLock { state in
                if case .over(let outcome) = state { return outcome }
                state = .awaited(waiter)
                return nil
            }
            if let outcome { waiter.resume(returning: outcome) }
        }
    }
}

/// The calls whose clients wait.
final class CallsInFlight: Sendable {
    private struct State {
        var next = 0
        var calls: [Int: @Sendable (PluginError) -> Void] = [:]
        var isEnding = false
    }

    private let state = Mutex(State())

    /// Adds a call; `end` ends it with an error.
    func add(_ end: @escaping @Sendable (PluginError) -> Void) -> Int {
        let (number, isEnding) = state.withLock { state in
            state.next += 1
            state.calls[state.next] = end
            return (state.next, state.isEnding)
        }
        if isEnding { end(.gatewayEnds) }
        return number
    }

    func remove(_ number: Int) { state.withLock { _ = $0.calls.removeValue(forKey: number) } }

    /// Ends all calls, and those to come.
    func endAll() {
        let calls = state.withLock { state in
            state.isEnding = true
            return state.calls.values.map(\.self)
        }
        for end in calls { end(.gatewayEnds) }
    }
}

extension PluginError {
    static let gatewayEnds = PluginError(
        .hostStopping, "The gateway ended before the call was over. Whether it has had an effect is unknown.")
}
