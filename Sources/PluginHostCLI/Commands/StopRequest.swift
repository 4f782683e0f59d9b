internal import Dispatch
internal import Glibc
internal import Synchronization

/// The wish that the program ends: by SIGINT, by SIGTERM, or at the prompt. A second signal ends it at once.
final class StopRequest: Sendable {
    private let requests: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation
    private let signals = Atomic(0)
    // Set once in `init` and kept alive; a source may be used from any thread.
    nonisolated(unsafe) private var sources: [any DispatchSourceSignal] = []

    /// Returns when signals are taken note of; until then they end the program as usual.
    init() {
        (requests, continuation) = AsyncStream.makeStream()
        let queue = DispatchQueue(label: "pluginhost.signals")
        let registration = DispatchGroup()
        for number in [SIGINT, SIGTERM] {
            registration.enter()
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler { [weak self] in self?.received(number) }
            source.setRegistrationHandler { registration.leave() }
            source.resume()
            sources.append(source)
        }
        registration.wait()
    }

    func stop() { continuation.yield() }

    /// Returns when somebody wants the program to end.
    func wait() async {
        for await _ in requests { return }
    }

    private func received(_ number: Int32) {
        if signals.add(1, ordering: .relaxed).newValue > 1 { _exit(128 + number) }
        stop()
    }
}
