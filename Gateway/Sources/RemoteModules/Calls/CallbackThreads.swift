import GatewayThreads

/// The threads that run code of the program, such as callbacks and the completions of asynchronous calls: neither the
/// threads that all tasks of the program share, nor those of the connections, since such code may wait for other calls.
enum CallbackThreads {
    static let shared = ThreadPool(limit: 512)

    static func run(_ body: @escaping @Sendable () -> Void) { shared.run(body) }
}
