import CPluginABI
import PluginABI

/// The progress of an event: how many subscribers have received it, and which of them failed.
struct EventDelivery: Sendable {
    /// The number of subscribers that have received it.
    var delivered = 0
    /// The failures; `nil` if there are none, as is almost always the case.
    private var failures: Failures?

    private final class Failures: Sendable {
        let errors: [(position: Int, error: PluginError)]
        let limit: PluginError?

        init(_ errors: [(position: Int, error: PluginError)], limit: PluginError?) {
            (self.errors, self.limit) = (errors, limit)
        }
    }

    /// Whether calls were nested too deeply. If so, no further subscriber receives the event, and the poster receives
    /// `recursionLimit`.
    var isAtLimit: Bool { failures?.limit != nil }

    /// Records that a subscriber has failed.
    ///
    /// - Parameter position: Its position among the subscribers that have received the event, from 1.
    mutating func note(_ error: PluginError, at position: Int) {
        failures = Failures(
            (failures?.errors ?? []) + [(position, error)],
            limit: error.code == .recursionLimit ? error : failures?.limit)
    }

    /// Lends the outcome to the poster.
    @inline(__always)
    func lend(to body: (UnsafePointer<plugin_value>?, UnsafePointer<plugin_error>?) -> Void) {
        guard let failures else { return EventOutcome.lend(delivered: delivered) { body($0, nil) } }
        if let limit = failures.limit { return limit.lend { body(nil, $0) } }
        let errors = failures.errors.sorted { $0.position < $1.position }.map(\.error)
        EventOutcome(delivered: delivered, failures: errors).lend { body($0, nil) }
    }
}

extension Calls {
    /// Logs that a subscriber has failed, and returns the error with its source.
    ///
    /// - Parameters:
    ///   - post: The call of the post within which the subscriber was called.
    ///   - caller: The generation that posted the event.
    func report(
        _ error: PluginError, of event: String, in endpoint: Endpoint, _ post: plugin_token,
        _ caller: Unmanaged<Generation>?
    ) -> PluginError {
        var error = error
        let name = endpoint.generation.sourceName
        if error.source == nil { error.source = name }
        // If the log handler posts events, they must count as posted inside the subscriber's call, so its record is
        // occupied again if the call has ended. Otherwise the subscriber could fail and be logged without end.
        let thread = ThreadContext.current
        let record = thread?.top?.endpoint === endpoint ? nil : thread?.next
        if let thread, let record {
            occupy(record, .passUnretained(endpoint), parent: post, caller: caller)
            _ = record.open({ _, _, _ in }, nil, deadline: 0, in: thread)
            thread.push()
        }
        settings.log(
            LogEntry(
                level: .error, module: name,
                message: "The event “\(event.shortened)” failed in \(name ?? "the program"): \(error.message) "
                    + "(\(error.code))"))
        if let thread, let record {
            record.close(record.token)
            record.vacate()
            thread.pop()
        }
        return error
    }
}
