public import PluginABI

extension PluginHost {
    /// Emits an event up the chain until a handler handles it: to an object, its parent, the parent's parent and so on,
    /// then to the module that made the first object, then to the program.
    ///
    /// - Parameters:
    ///   - event: A name, such as `shop.choose`.
    ///   - parameters: Parameters by name. A handler gets only those that it declares.
    ///   - origin: The object where the chain begins. Default: the object whose action is running on this thread; if
    ///     there is none, only the program's handlers are called.
    /// - Returns: Which handler handled the event, and which handlers failed; failures are also logged. An event that
    ///   nothing handles is not an error.
    /// - Throws: ``/PluginABI/PluginError/Code/invalidValue`` for parameters without names;
    ///   ``/PluginABI/PluginError/Code/unknownObject`` if the last holder of `origin` has released it;
    ///   ``/PluginABI/PluginError/Code/recursionLimit`` if the event is emitted from inside its own handler again and
    ///   again.
    @discardableResult
    public func emit(
        _ event: String, _ parameters: Parameters = [:], from origin: Object? = nil
    ) throws(PluginError) -> ChainOutcome {
        try program.emit(event, parameters, from: origin)
    }

    /// Emits an event up the chain, including to asynchronous handlers: each one is awaited before the next is called.
    @discardableResult
    public func emit(
        _ event: String, _ parameters: Parameters = [:], from origin: Object? = nil, timeout: Duration? = nil
    ) async throws(PluginError) -> ChainOutcome {
        try await program.emit(event, parameters, from: origin, timeout: timeout)
    }

    /// Handles an event at the end of the chain, if no object and no module has handled it. Several handlers are called
    /// in the order in which they were added.
    ///
    /// - Parameters:
    ///   - event: The event's name.
    ///   - body: The code that handles the event. It runs on the emitting thread, possibly concurrently.
    /// - Returns: The handler. It is removed when it is cancelled or deinitialized.
    public func handle(
        _ event: String, _ body: @escaping @Sendable (ChainEvent) throws -> ChainReply
    ) -> ChainHandler {
        handle(.named(event), .synchronous(body))
    }

    /// Handles an event at the end of the chain asynchronously. The handler is called only by the asynchronous `emit`.
    public func handle(
        _ event: String, _ body: @escaping @Sendable (ChainEvent) async throws -> ChainReply
    ) -> ChainHandler {
        handle(.named(event), .asynchronous(body))
    }

    /// Handles all events that reach the end of the chain, or all whose names begin with a prefix.
    ///
    /// - Parameters:
    ///   - prefix: The beginning of the names. Default: all events.
    ///   - body: The code that handles an event. It runs on the emitting thread, possibly concurrently.
    /// - Returns: The handler. It is removed when it is cancelled or deinitialized.
    public func handle(
        prefix: String = "", _ body: @escaping @Sendable (ChainEvent) throws -> ChainReply
    ) -> ChainHandler {
        handle(.prefix(prefix), .synchronous(body))
    }

    /// Handles all events, or all with a prefix, asynchronously. The handler is called only by the asynchronous `emit`.
    public func handle(
        prefix: String = "", _ body: @escaping @Sendable (ChainEvent) async throws -> ChainReply
    ) -> ChainHandler {
        handle(.prefix(prefix), .asynchronous(body))
    }

    private func handle(_ events: ChainHandlers.Events, _ body: ChainHandlers.Body) -> ChainHandler {
        ChainHandler(core.chainHandlers.add(events, body), of: events, in: core.chainHandlers)
    }
}

/// A handler of the program, made with `PluginHost.handle`. It is removed when it is cancelled or deinitialized.
public final class ChainHandler: Sendable {
    /// The event's name; `nil` for a handler of all events with a prefix.
    public let event: String?
    /// The prefix of the events' names, empty for all events; `nil` for a handler of one event.
    public let prefix: String?
    private let handlers: ChainHandlers
    private let number: Int

    init(_ number: Int, of events: ChainHandlers.Events, in handlers: ChainHandlers) {
        (self.number, self.handlers) = (number, handlers)
        switch events {
        case .named(let name): (event, prefix) = (name, nil)
        case .prefix(let beginning): (event, prefix) = (nil, beginning)
        }
    }

    /// Removes the handler. If it is running, it runs to its end.
    public func cancel() { handlers.remove(number) }

    deinit { cancel() }
}
