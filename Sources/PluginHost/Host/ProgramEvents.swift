public import PluginABI
import Synchronization

extension PluginHost {
    /// Posts an event to everybody who subscribes to it: modules in the order of their level, priority and name, then
    /// the program. Asynchronous subscribers are started; nobody waits for their end.
    ///
    /// - Parameters:
    ///   - event: A name, such as `shop.sold`.
    ///   - parameters: By name. What a subscriber does not declare is left out for it.
    ///   - sticky: Modules that come later get the event, too, after their `didStart`, and so does the program when it
    ///     subscribes; a later one replaces it.
    /// - Returns: How many got it, and which failed; a failure is also logged, and stops nobody else.
    /// - Throws: ``/PluginABI/PluginError/Code/recursionLimit`` for an event that is posted from inside its own handler
    ///   again and again.
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
    ///   - parameters: By name. What a subscriber does not declare is left out for it.
    ///   - sticky: Modules that come later get the event, too.
    ///   - timeout: How long to wait at most. Default: as long as a subscriber may take.
    /// - Returns: How many got it, and which failed.
    /// - Throws: As the synchronous form; ``/PluginABI/PluginError/Code/deadlineExceeded``.
    @discardableResult
    public func post(
        _ event: String, _ parameters: Parameters = [:], sticky: Bool = false, timeout: Duration? = nil
    ) async throws(PluginError) -> EventOutcome {
        try await program.post(event, parameters, sticky: sticky, timeout: timeout)
    }

    /// Subscribes the program to an event; a sticky one that was posted before comes at once.
    ///
    /// - Parameters:
    ///   - event: Its name.
    ///   - handler: Gets all parameters. Runs on the thread that posts, also concurrently. What it throws is logged,
    ///     and the poster is told.
    /// - Returns: The subscription; it ends when it is cancelled or dropped.
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
        let handler = ObjectTable.create(type, holding: EventHandlerBox(handler))
        let subscription = Subscription(handler, to: event, on: core.events)
        let sticky = core.events.add(handler, isAsync: isAsync, to: event)
        lifecycle.watchMemoryIfAwaited()
        if let sticky { calls.deliverSticky(sticky, to: .program(handler)) }
        return subscription
    }
}

/// A subscription of the program, made with `PluginHost.on`. It ends when it is cancelled or dropped.
public final class Subscription: Sendable {
    /// The event.
    public let event: String
    private let events: EventBoard
    private let handler: plugin_object
    private let isOver = Atomic(false)

    init(_ handler: plugin_object, to event: String, on events: EventBoard) {
        (self.event, self.events, self.handler) = (event, events, handler)
    }

    /// Ends the subscription. A handler that runs goes on.
    public func cancel() {
        guard !isOver.exchange(true, ordering: .acquiringAndReleasing) else { return }
        events.remove(handler, from: event)
        _ = ObjectTable.release(handler)
    }

    deinit { cancel() }
}
