import Synchronization

/// A call that ``TestBench/record(_:)`` has recorded, with its outcome.
public struct RecordedCall: Sendable {
    /// The target; for a call to an object, its type; for an event that a subscriber receives, an empty string.
    public let target: String
    /// The action, or the event.
    public let action: String
    /// The parameters by name, as given by the caller; defaults are added later.
    public let parameters: [String: Value]
    /// The origin of the call: this program or another one.
    public let origin: CallOrigin
    /// The outcome that the caller got.
    public let outcome: Result<Value, PluginError>
}

/// The calls that were made since ``TestBench/record(_:)``, in the order in which they ended.
///
///     let formats = bench.record(.action("B", "format"))
///     try bench.host.perform("A", "price", ["key": "apple"])
///     #expect(formats.calls.first?.parameters["amount"] == 0.5)
public final class CallRecording: Sendable {
    private let recorded = Mutex<[RecordedCall]>([])

    /// The calls so far.
    public var calls: [RecordedCall] { recorded.withLock { $0 } }

    func add(_ call: InterceptedCall, _ outcome: Result<Value, PluginError>) {
        let call = RecordedCall(
            target: call.target, action: call.action, parameters: call.parameters, origin: call.origin,
            outcome: outcome)
        recorded.withLock { $0.append(call) }
    }
}

/// The events of one name that were posted since ``TestBench/listen(to:)``.
///
///     let sold = bench.listen(to: "shop.sold")
///     try bench.host.perform("A", "buy", ["key": "apple"])
///     #expect(sold.events == [["item": "apple"]])
///
/// The recording ends when the object is released.
public final class EventRecording: Sendable {
    private let received = Received()
    private let subscription: Subscription

    private final class Received: Sendable { let events = Mutex<[[String: Value]]>([]) }

    init(_ event: String, of host: PluginHost) {
        subscription = host.on(event) { [received] parameters in received.events.withLock { $0.append(parameters) } }
    }

    /// The parameters of each event so far, in the order in which they were posted.
    public var events: [[String: Value]] { received.events.withLock { $0 } }
}

extension TestBench {
    /// Starts to record calls: those of the test, of the module, and of its peers.
    ///
    ///     let all = bench.record()
    ///     let formats = bench.record(.action("B", "format"))
    ///
    /// The recording is an interceptor of the host, outside of all others. It does not see callbacks, nor calls that
    /// the host has already refused (for instance because no module offers the target).
    ///
    /// - Parameter scope: The calls to record. Default: all.
    public func record(_ scope: InterceptionScope = .all) -> CallRecording {
        let recording = CallRecording()
        host.intercept(scope, priority: .max) { call, next in
            do {
                let value = try next(call)
                recording.add(call, .success(value))
                return value
            } catch {
                recording.add(call, .failure(error as? PluginError ?? PluginError(.actionFailed, "\(error)")))
                throw error
            }
        }
        return recording
    }

    /// Starts to record the events of a name, including a sticky one that was posted before. The recording is a
    /// subscriber like any other, so the outcome that the poster gets counts it.
    public func listen(to event: String) -> EventRecording { EventRecording(event, of: host) }
}
