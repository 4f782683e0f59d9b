public import PluginABI

extension PluginHost {
    /// Sends an event up the chain: to an object, its parent, the parent of that and so on, then to the module that made
    /// the object, then to the program, until one handles it.
    ///
    /// - Parameters:
    ///   - event: A name, such as `shop.choose`.
    ///   - parameters: By name. What a handler does not declare is left out for it.
    ///   - origin: Where it begins. Default: the object or the module whose action runs on this thread; where none does, only the
    ///     program is asked.
    /// - Returns: Who has handled it, and who failed, which is also logged. That nobody handles it is no error.
    /// - Throws: ``/PluginABI/PluginError/Code/invalidValue`` for parameters without names;
    ///   ``/PluginABI/PluginError/Code/unknownObject`` when nobody holds the origin;
    ///   ``/PluginABI/PluginError/Code/recursionLimit`` for an event that is emitted from inside its own handler again and
    ///   again.
    @discardableResult
    public func emit(
        _ event: String, _ parameters: Parameters = [:], from origin: Object? = nil
    ) throws(PluginError) -> ChainOutcome {
        try program.emit(event, parameters, from: origin)
    }

    /// The same, also for handlers that are asynchronous: each one is awaited before the next is asked.
    @discardableResult
    public func emit(
        _ event: String, _ parameters: Parameters = [:], from origin: Object? = nil, timeout: Duration? = nil
    ) async throws(PluginError) -> ChainOutcome {
        try await program.emit(event, parameters, from: origin, timeout: timeout)
    }

    /// Handles an event at the end of the chain: what no object and no module has handled. Of several handlers the one
    /// that came first is asked first.
    ///
    /// - Parameters:
    ///   - event: Its name.
    ///   - body: Runs on the thread that emits, also concurrently.
    /// - Returns: The handler; it ends when it is cancelled or dropped.
    public func handle(
        _ event: String, _ body: @escaping @Sendable (ChainEvent) throws -> ChainReply
    ) -> ChainHandler {
        let handlers = core.chainHandlers
        return ChainHandler(handlers.add(event, .synchronous(body)), of: event, in: handlers)
    }

    /// Handles an event at the end of the chain, asynchronously: only where `emit` is awaited.
    public func handle(
        _ event: String, _ body: @escaping @Sendable (ChainEvent) async throws -> ChainReply
    ) -> ChainHandler {
        let handlers = core.chainHandlers
        return ChainHandler(handlers.add(event, .asynchronous(body)), of: event, in: handlers)
    }
}

/// A handler of the program, made with `PluginHost.handle`. It ends when it is cancelled or dropped.
public final class ChainHandler: Sendable {
    /// The event.
    public let event: String
    private let handlers: ChainHandlers
    private let number: Int

    init(_ number: Int, of event: String, in handlers: ChainHandlers) {
        (self.number, self.event, self.handlers) = (number, event, handlers)
    }

    /// Asks the handler no more. One that runs goes on.
    public func cancel() { handlers.remove(number) }

    deinit { cancel() }
}
