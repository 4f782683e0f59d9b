import PluginABI
import PluginHost
import Synchronization

/// A result that is read element by element: an object with the action `next`, which returns null at the end. Each
/// element may take as long as a call.
///
/// Elements that arrive in quick succession are collected: if each were sent on its own, a long cursor would keep
/// the other connections of its event loop waiting. An element is held back for ``patience`` at most.
final class Cursor: Sendable {
    private struct State {
        /// The elements that have not been sent yet.
        var text = ""
        /// Whether the timer that sends these elements has been started.
        var isTimed = false
        /// How many more elements may be read.
        var remaining: Int
        /// Whether elements are being read.
        var isReading = false
        var reading: Task<Void, Never>?
        /// How the cursor ended.
        var end: Result<Void, PluginError>?
    }

    /// How many bytes are collected.
    private static let enough = 16 << 10
    /// How long an element waits for others.
    private static let patience = Duration.milliseconds(5)

    private let object: Object
    private let running: RunningCall
    /// What is sent before and after each element.
    private let (head, tail): (String, String)
    private let state: Mutex<State>
    /// Has an element whenever there may be something to send.
    private let arrivals: AsyncStream<Void>
    private let arrival: AsyncStream<Void>.Continuation

    /// Reads the first element.
    ///
    /// - Parameters:
    ///   - object: The object.
    ///   - running: The call that has returned it.
    ///   - limit: How many elements are read.
    ///   - head: What is sent before each element.
    ///   - tail: What is sent after it.
    /// - Throws: `notRepresentable` if it is not a cursor; the errors of `next`.
    init(
        _ object: Object, _ running: RunningCall, limit: Int, head: String = "", tail: String = "\n"
    ) async throws(Problem) {
        (self.object, self.running, self.head, self.tail) = (object, running, head, tail)
        (arrivals, arrival) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        state = Mutex(State(remaining: limit))
        do throws(PluginError) {
            let first = try await running.perform { () async throws(PluginError) in
                try await object.call("next", timeout: running.call.timeout)
            }
            try add(first)
        } catch {
            throw Problem(error.code == .unknownAction ? .noCursor : error)
        }
    }

    /// Returns the next elements, as they are sent; `nil` at the end.
    func next() async throws(PluginError) -> String? {
        while true {
            if startReading() {
                await withTaskCancellationHandler {
                    for await _ in arrivals { break }
                } onCancel: {
                    close()
                }
                // The reader then states why.
                if Task.isCancelled {
                    close()
                    await state.withLock(\.reading)?.value
                }
            }
            let (text, end) = state.withLock { state in
                defer { (state.text, state.isTimed) = ("", false) }
                return (state.text, state.end)
            }
            if !text.isEmpty { return text }
            if let end {
                try end.get()
                return nil
            }
        }
    }

    /// Stops reading, because no more elements are needed.
    func close() { state.withLock(\.reading)?.cancel() }

    /// Continues reading, unless that has already begun. Returns whether there is something to wait for.
    private func startReading() -> Bool {
        state.withLock { state in
            guard state.end == nil else { return false }
            guard !state.isReading else { return true }
            state.isReading = true
            state.reading = Task {
                do throws(PluginError) {
                    _ = try await running.perform { [self] () async throws(PluginError) in
                        let start = ContinuousClock.now
                        while try add(try await object.call("next", timeout: running.call.timeout)),
                            .now - start < Self.patience
                        {}
                        return .null
                    }
                    stopReading(nil)
                } catch {
                    stopReading(error)
                }
            }
            return true
        }
    }

    private func stopReading(_ error: PluginError?) {
        state.withLock { state in
            state.isReading = false
            if let error { state.end = state.end ?? .failure(error) }
        }
        arrival.yield()
    }

    /// Adds an element, or the end. Returns whether there is room for more.
    @discardableResult private func add(_ value: Value) throws(PluginError) -> Bool {
        let line = try value.line
        let (hasRoom, isFirst) = try state.withLock { (state) throws(PluginError) -> (Bool, Bool) in
            guard state.end == nil else { return (false, false) }
            guard let line else {
                state.end = .success(())
                return (false, false)
            }
            guard state.remaining > 0 else { throw .longCursor }
            state.remaining -= 1
            state.text += head + line + tail
            defer { state.isTimed = true }
            return (state.text.utf8.count < Self.enough, !state.isTimed)
        }
        if isFirst {
            Task { [arrival] in
                try? await Task.sleep(for: Self.patience)
                arrival.yield()
            }
        }
        return hasRoom
    }
}

extension PluginError {
    fileprivate static let noCursor = PluginError(
        .notRepresentable, "The result is an object without the action next, which cannot leave the program.")

    fileprivate static let longCursor = PluginError(
        .overloaded, "The cursor has more elements than the gateway sends in one response.")
}
