public import PluginABI
public import PluginHost
import Synchronization

/// A call that a ``TestBench/record(_:)`` has seen, with its outcome.
public struct RecordedCall: Sendable {
    /// The target; of a call on an object the type; empty for a subscriber of an event.
    public let target: String
    /// The action, or the event.
    public let action: String
    /// The parameters by name, as given: defaults come later.
    public let parameters: [String: Value]
    /// Whether it came from this program or from another one.
    public let origin: CallOrigin
    /// What the caller got.
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
/// It ends with the value.
public final class EventRecording: Sendable {
    private let received: Received
    private let subscription: Subscription

    private final class Received: Sendable { let events = Mutex<[[String: Value]]>([]) }

    init(_ event: String, of host: PluginHost) {
        let received = Received()
        self.received = received
        subscription = host.on(event) { parameters in received.events.withLock { $0.append(parameters) } }
    }

    /// The parameters of each event so far, in the order in which they were posted.
    public var events: [[String: Value]] { received.events.withLock { $0 } }
}

extension TestBench {
    /// Records calls from now on: those of the test, those of the module, those of its peers.
    ///
    ///     let all = bench.record()
    ///     let formats = bench.record(.action("B", "format"))
    ///
    /// It is an interceptor of the host, outside of all others: an error of its checks before (nobody offers the target)
    /// is not seen, nor are callbacks.
    ///
    /// - Parameter scope: Which calls. Default: all of them.
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

    /// Records what is posted under a name from now on, and what was posted before if it is sticky. The recording is a
    /// subscriber like any other: who posts is told of one more.
    public func listen(to event: String) -> EventRecording { EventRecording(event, of: host) }
}
