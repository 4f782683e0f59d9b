import CPluginABI

/// Code that runs when a caller stops waiting for its call.
final class CancelHandler: Sendable {
    private let body: @Sendable () -> Void

    private init(_ body: @escaping @Sendable () -> Void) { self.body = body }

    /// Sets the handler of an asynchronous call of a generation. The handler is kept until the call is over.
    static func set(of call: plugin_token, in generation: Generation, _ body: @escaping @Sendable () -> Void) {
        let host = generation.hostTable!
        host.pointee.on_cancel(
            host, call,
            { data, isCancelled in
                let handler = Unmanaged<CancelHandler>.fromOpaque(data!).takeRetainedValue()
                if isCancelled != 0 { handler.body() }
            }, Unmanaged.passRetained(CancelHandler(body)).toOpaque())
    }
}
