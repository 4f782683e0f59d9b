import Foundation
import PluginABI
import PluginFile
import Synchronization

// What the host tells about its modules by events of its own.

extension Calls {
    /// `module.added`, or `module.replaced` with the version before.
    func postAdded(_ generation: Generation, insteadOf predecessor: Generation?) {
        guard let predecessor else { return postHostEvent("module.added", generation.eventParameters) }
        var parameters = generation.eventParameters
        parameters["previousVersion"] = .string(predecessor.version.description)
        postHostEvent("module.replaced", parameters)
    }

    func postRemoved(_ generation: Generation) {
        postHostEvent("module.removed", generation.eventParameters)
    }

    func postFailed(_ status: ModuleStatus) {
        var parameters: [String: Value] = ["file": .string(status.file)]
        if let name = status.name { parameters["name"] = .string(name) }
        if let error = status.error {
            parameters["code"] = .string(error.code.rawValue)
            parameters["message"] = .string(error.message)
        }
        postHostEvent("module.failed", parameters)
    }
}

/// Tells observers and subscribers what happens to the modules of a host. All functions may be called from any thread.
final class Announcements: Sendable {
    private enum Observers {
        case notYet
        case listening([UUID: AsyncStream<HostChange>.Continuation])
        case ended
    }

    private let calls: Calls
    private let runner: HookRunner
    private let hookTimeout: Duration
    /// How many events are being delivered that are not waited for any more.
    private let overdueEvents = Atomic(0)
    private let observers = Mutex(Observers.notYet)

    init(_ calls: Calls, _ runner: HookRunner, hookTimeout: Duration) {
        (self.calls, self.runner, self.hookTimeout) = (calls, runner, hookTimeout)
    }

    // MARK: Observers

    /// Lets observers come.
    func begin() { observers.withLock { $0 = .listening([:]) } }

    /// Everything that happens from now on; ends at once before the beginning and after the end.
    func changes() -> AsyncStream<HostChange> {
        let (stream, continuation) = AsyncStream.makeStream(of: HostChange.self)
        let id = UUID()
        continuation.onTermination = { [weak self] _ in self?.set(nil, for: id) }
        if !set(continuation, for: id) { continuation.finish() }
        return stream
    }

    /// Returns whether there are observers at this time.
    @discardableResult
    private func set(_ observer: AsyncStream<HostChange>.Continuation?, for id: UUID) -> Bool {
        observers.withLock { observers in
            guard case .listening(var present) = observers else { return false }
            observers = .notYet  // So that the dictionary is not copied.
            present[id] = observer
            observers = .listening(present)
            return true
        }
    }

    func tell(_ change: HostChange) {
        let observers = observers.withLock(\.self)
        if case .listening(let present) = observers { for observer in present.values { observer.yield(change) } }
    }

    /// Lets observers go.
    func end() {
        let last = observers.withLock { observers in
            defer { observers = .ended }
            return observers
        }
        if case .listening(let present) = last { for observer in present.values { observer.finish() } }
    }

    // MARK: Subscribers

    /// The delivery of an event, which ends, and may be given up before or after that.
    private final class Delivery: Sendable {
        private let isLeftByOne = Atomic(false)

        /// Returns whether the other one has left it: who waits, or who delivers.
        func isLeft() -> Bool { isLeftByOne.exchange(true, ordering: .acquiringAndReleasing) }
    }

    /// Posts an event of the host's where modules subscribe to it, on a thread that a subscriber may keep. The program's
    /// own handlers have all the time that they take.
    ///
    /// - Parameters:
    ///   - timeout: How long it is waited for; nil for the hook timeout. While an earlier one is overdue, a tenth of a
    ///     second at most: a start of many modules does not wait for one of them as often as there are others.
    ///   - post: What posts it.
    func announce(_ event: String, timeout: Duration? = nil, _ post: @escaping @Sendable () -> Void) {
        guard !calls.registry.table.moduleSubscribers(of: event).isEmpty else { return post() }
        var timeout = timeout ?? hookTimeout
        if overdueEvents.load(ordering: .relaxed) > 0 { timeout = min(timeout, .milliseconds(100)) }
        let patience = Patience(
            subject: "The event “\(event)”", module: nil, timeout: timeout, log: calls.settings.log)
        let delivery = Delivery()
        do throws(PluginError) {
            let end: Void? = try runner.run(for: ObjectIdentifier(calls.core), patience) {
                post()
                if delivery.isLeft() { self.overdueEvents.subtract(1, ordering: .relaxed) }
            }
            guard end == nil else { return }
        } catch {
            return post()  // Without a thread for it, on this one.
        }
        overdueEvents.add(1, ordering: .relaxed)
        if delivery.isLeft() { overdueEvents.subtract(1, ordering: .relaxed) }
        calls.settings.log(
            LogEntry(
                level: .error,
                message: "A subscriber to the event “\(event)” did not end within \(timeout). It goes on in a thread "
                    + "of its own, and those behind it get the event when it has ended."))
    }
}

extension Generation {
    fileprivate var eventParameters: [String: Value] {
        [
            "name": .string(name), "version": .string(version.description), "file": .string(file),
            "generation": .int(number),
        ]
    }
}
