import FoundationEssentials
import PluginABI
import PluginFile
import Synchronization

// The host's own events about its modules.

extension Calls {
    /// Posts `module.added`, or `module.replaced` with the previous version.
    ///
    /// - Parameter module: The parameters of the event that describe the module.
    func postAdded(_ module: [String: Value], insteadOf previous: SemanticVersion?) {
        guard let previous else { return postHostEvent("module.added", module) }
        var parameters = module
        parameters["previousVersion"] = .string(previous.description)
        postHostEvent("module.replaced", parameters)
    }

    /// - Parameter module: The parameters of the event that describe the module.
    func postRemoved(_ module: [String: Value]) { postHostEvent("module.removed", module) }

    /// Posts `module.crashed` with the reason.
    func postCrashed(_ generation: Generation, _ reason: String) {
        var parameters = generation.eventParameters
        parameters["message"] = .string(reason)
        postHostEvent("module.crashed", parameters)
    }

    func postFailed(_ status: ModuleStatus) {
        let parameters: [String: Value?] = [
            "file": .string(status.file), "name": status.name.map(Value.string),
            "code": status.error.map { .string($0.code.rawValue) }, "message": status.error.map { .string($0.message) },
        ]
        postHostEvent("module.failed", parameters.compactMapValues(\.self))
    }
}

/// The notifications of observers and subscribers about a host's modules. All functions may be called from any thread.
final class Announcements: Sendable {
    private enum Observers {
        case listening([UUID: ChangeObserver])
        case ended
    }

    private let calls: Calls
    private let runner: HookRunner
    private let hookTimeout: Duration
    /// How many events are still being delivered after their timeout.
    private let overdueEvents = Atomic(0)
    /// Whether handlers of the program run on the thread that changes modules.
    private let isPosting = Atomic(false)
    /// How many events the thread that changes modules waits for.
    private let awaitedEvents = Atomic(0)
    private let observers = Mutex(Observers.listening([:]))

    init(_ calls: Calls, _ runner: HookRunner, hookTimeout: Duration) {
        (self.calls, self.runner, self.hookTimeout) = (calls, runner, hookTimeout)
    }

    deinit { end() }

    // MARK: Observers

    /// Returns a stream of the changes from now on. After ``end()``, the stream is finished immediately.
    func changes() -> AsyncStream<HostChange> {
        let (stream, observer) = ChangeObserver.make()
        let id = UUID()
        observer.onTermination { [weak self] in self?.set(nil, for: id) }
        if !set(observer, for: id) { observer.finish() }
        return stream
    }

    /// Adds or removes an observer. Returns false after ``end()``.
    @discardableResult
    private func set(_ observer: ChangeObserver?, for id: UUID) -> Bool {
        observers.withLock { observers in
            guard case .listening(var present) = observers else { return false }
            observers = .ended  // Avoids copying the dictionary.
            present[id] = observer
            observers = .listening(present)
            return true
        }
    }

    /// Whether there are observers.
    var haveObservers: Bool {
        observers.withLock { if case .listening(let present) = $0 { !present.isEmpty } else { false } }
    }

    func tell(_ change: HostChange) {
        let observers = observers.withLock(\.self)
        if case .listening(let present) = observers { for observer in present.values { observer.tell(change) } }
    }

    /// Finishes the streams of all observers.
    func end() {
        let last = observers.withLock { observers in
            defer { observers = .ended }
            return observers
        }
        if case .listening(let present) = last { for observer in present.values { observer.finish() } }
    }

    // MARK: Subscribers

    /// The delivery of one event, which the waiting thread and the delivering thread leave in either order.
    private final class Delivery: Sendable {
        private let isLeftByOne = Atomic(false)

        /// Leaves the delivery. Returns whether the other thread has already left it.
        func isLeft() -> Bool { isLeftByOne.exchange(true, ordering: .acquiringAndReleasing) }
    }

    /// Whether handlers of the program, which may need other modules, run on the thread that changes modules.
    var runsHandlers: Bool { isPosting.load(ordering: .relaxed) }

    /// Whether the thread that changes modules waits for subscribers in modules, which may need other modules.
    var isWaiting: Bool { awaitedEvents.load(ordering: .relaxed) > 0 }

    private func postHere(_ post: () -> Void) {
        let wasPosting = isPosting.exchange(true, ordering: .relaxed)
        post()
        isPosting.store(wasPosting, ordering: .relaxed)
    }

    /// Posts an event of the host and waits for its delivery. If modules subscribe to the event, it is posted on a
    /// thread that a subscriber may keep. If only the program has handlers, it is posted on this thread, without a
    /// timeout.
    ///
    /// - Parameters:
    ///   - timeout: How long to wait for the delivery; `nil` for the hook timeout. While an earlier event is overdue,
    ///     at most a tenth of a second, so that the start of many modules does not wait the full time for each of them.
    ///   - post: Posts the event.
    func announce(_ event: String, timeout: Duration? = nil, _ post: @escaping @Sendable () -> Void) {
        guard calls.hasSubscribers(event) else { return }
        guard !calls.registry.table.moduleSubscribers(of: event).isEmpty else { return postHere(post) }
        var timeout = timeout ?? hookTimeout
        if overdueEvents.load(ordering: .relaxed) > 0 { timeout = min(timeout, .milliseconds(100)) }
        let patience = Patience(
            subject: "The event “\(event)”", module: nil, timeout: timeout, log: calls.settings.log)
        let delivery = Delivery()
        awaitedEvents.add(1, ordering: .relaxed)
        defer { awaitedEvents.subtract(1, ordering: .relaxed) }
        do throws(PluginError) {
            let end: Void? = try runner.run(for: ObjectIdentifier(calls.core), patience) {
                post()
                if delivery.isLeft() { self.overdueEvents.subtract(1, ordering: .relaxed) }
            }
            guard end == nil else { return }
        } catch {
            return postHere(post)  // No thread can be started, so the event is posted on this one.
        }
        overdueEvents.add(1, ordering: .relaxed)
        if delivery.isLeft() { overdueEvents.subtract(1, ordering: .relaxed) }
        calls.settings.log(
            LogEntry(
                level: .error,
                message: "A subscriber to the event “\(event)” did not return within \(timeout). It continues on a "
                    + "thread of its own, and the subscribers after it receive the event when it has returned."))
    }
}

extension LoadedModule {
    /// The parameters of the host's events that describe the module.
    var eventParameters: [String: Value] {
        ["name": .string(name), "version": .string(outline.version.description), "file": .string(file)]
    }
}

extension Generation {
    /// The parameters of the host's events that describe the module.
    var eventParameters: [String: Value] {
        [
            "name": .string(name), "version": .string(version.description), "file": .string(file),
            "generation": .int(number),
        ]
    }
}
