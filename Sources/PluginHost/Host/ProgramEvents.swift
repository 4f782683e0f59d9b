public import PluginABI
import Synchronization

extension PluginHost {
    /// Posts an event to all its subscribers: the modules in the order in which they start, then the program.
    /// Asynchronous subscribers are started, but not waited for.
    ///
    /// - Parameters:
    ///   - event: A name, such as `shop.sold`.
    ///   - parameters: Parameters by name. A subscriber gets only those that it declares.
    ///   - sticky: Whether later subscribers get the event, too: modules after their `didStart`, the program when it
    ///     subscribes. A later sticky event of the same name replaces it.
    /// - Returns: How many subscribers got the event, and which failed. A failure is also logged, and does not keep the
    ///   event from other subscribers.
    /// - Throws: ``/PluginABI/PluginError/Code/recursionLimit`` if the event is posted from inside its own handler again
    ///   and again.
    @discardableResult
    public func post(
        _ event: String, _ parameters: Parameters = [:], sticky: Bool = false
    ) throws(PluginError) -> EventOutcome {
        try program.post(event, parameters, sticky: sticky)
    }

    /// Posts an event, and waits until the asynchronous subscribers have ended, too. See ``post(_:_:sticky:)``.
    ///
    /// - Parameters:
    ///   - event: A name, such as `shop.sold`.
    ///   - parameters: Parameters by name. A subscriber gets only those that it declares.
    ///   - sticky: Whether later subscribers get the event, too.
    ///   - timeout: The longest time to wait. Default: as long as a subscriber may take.
    /// - Returns: How many subscribers got the event, and which failed.
    /// - Throws: The errors of ``post(_:_:sticky:)``; ``/PluginABI/PluginError/Code/deadlineExceeded``.
    @discardableResult
    public func post(
        _ event: String, _ parameters: Parameters = [:], sticky: Bool = false, timeout: Duration? = nil
    ) async throws(PluginError) -> EventOutcome {
        try await program.post(event, parameters, sticky: sticky, timeout: timeout)
    }

    /// Subscribes the program to an event. A sticky event that was posted before is delivered immediately.
    ///
    /// - Parameters:
    ///   - event: The event's name.
    ///   - handler: The code that gets all parameters. It runs on the posting thread, possibly concurrently. An error
    ///     that it throws is logged, and reported to the poster.
    /// - Returns: The subscription. It ends when it is cancelled or deinitialized.
    public func on(
        _ event: String, _ handler: @escaping @Sendable (_ parameters: [String: Value]) throws -> Void
    ) -> Subscription {
        subscribe(event, .synchronous(handler))
    }

    /// Subscribes the program to an event with an asynchronous handler.
    public func on(
        _ event: String, _ handler: @escaping @Sendable (_ parameters: [String: Value]) async throws -> Void
    ) -> Subscription {
        subscribe(event, .asynchronous(handler))
    }

    private func subscribe(_ event: String, _ handler: EventHandlerBox.Handler) -> Subscription {
        let program = calls.program
        let isAsync = handler.isAsync
        let type = core.events.type(of: event, isAsync: isAsync) {
            EventHandlerBox.type(for: event, in: program, isAsync: isAsync)
        }
        let box = EventHandlerBox(handler)
        let handler = ObjectTable.create(type, holding: box)
        let subscription = Subscription(handler, box, to: event, on: core.events)
        let sticky = core.events.add(handler, isAsync: isAsync, to: event)
        lifecycle.watchMemoryIfAwaited()
        if let sticky { calls.deliverSticky(sticky, to: .program(handler)) }
        return subscription
    }
}

/// A subscription of the program, made with `PluginHost.on`. It ends when it is cancelled or deinitialized.
public final class Subscription: Sendable {
    /// The event's name.
    public let event: String
    private let events: EventBoard
    private let handler: plugin_object
    private let box: EventHandlerBox
    private let isOver = Atomic(false)

    init(_ handler: plugin_object, _ box: EventHandlerBox, to event: String, on events: EventBoard) {
        (self.event, self.events, self.handler, self.box) = (event, events, handler, box)
    }

    /// Ends the subscription: the handler does not begin to run any more. If it is running, it runs to its end.
    public func cancel() {
        guard !isOver.exchange(true, ordering: .acquiringAndReleasing) else { return }
        box.end()
        events.remove(handler, from: event)
        _ = ObjectTable.release(handler)
    }

    deinit { cancel() }
}
