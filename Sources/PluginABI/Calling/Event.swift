/// The outcome of an event.
public struct EventOutcome: Sendable, Hashable {
    /// The number of subscribers that received the event, including those that failed.
    public let delivered: Int
    /// The errors of the subscribers that failed; the source of each is the subscriber's module. A failure does not
    /// keep the event from other subscribers.
    public let failures: [PluginError]

    package init(delivered: Int, failures: [PluginError]) {
        (self.delivered, self.failures) = (delivered, failures)
    }
}

extension HostContext {
    /// Posts an event to all its subscribers: the modules in the order in which they start, then the program.
    /// Asynchronous subscribers are started, but not waited for.
    ///
    /// - Parameters:
    ///   - event: A name, such as `shop.sold`. Names that begin with `host.`, `module.` or `configuration.` are
    ///     reserved for the host.
    ///   - parameters: Parameters by name. A subscriber gets only those that it declares.
    ///   - sticky: Whether modules that are added later get the event, too, after their `didStart`. A later sticky
    ///     event of the same name replaces it.
    /// - Throws: ``PluginError/Code/recursionLimit`` if the event is posted from its own handler again and again;
    ///   ``PluginError/Code/invalidValue`` if a value cannot cross the boundary.
    @discardableResult
    public func post(
        _ event: String, _ parameters: Parameters = [:], sticky: Bool = false
    ) throws(PluginError) -> EventOutcome {
        var posted = Posted(host: host)
        defer { posted.other?.release() }
        try Address.event(event, isSticky: sticky).withRequest(parameters, .local, nil, flags: requestFlags) {
            request in
            withUnsafeMutablePointer(to: &posted) { host.pointee.perform(host, call, request, Posted.completion, $0) }
        }
        guard let other = posted.other else { return EventOutcome(delivered: posted.delivered, failures: []) }
        return try other.takeUnretainedValue().outcome.get()
    }

    /// Posts an event, and waits until its asynchronous subscribers have finished, too. See ``post(_:_:sticky:)``.
    ///
    /// - Parameters:
    ///   - event: A name, such as `shop.sold`.
    ///   - parameters: Parameters by name. A subscriber gets only those that it declares.
    ///   - sticky: Whether modules that are added later get the event, too.
    ///   - timeout: The longest time to wait. Default: as long as a subscriber may take.
    /// - Throws: The errors of ``post(_:_:sticky:)``; ``PluginError/Code/deadlineExceeded`` if the timeout passes;
    ///   ``PluginError/Code/cancelled`` if this task is cancelled.
    @discardableResult
    public func post(
        _ event: String, _ parameters: Parameters = [:], sticky: Bool = false, timeout: Duration? = nil
    ) async throws(PluginError) -> EventOutcome {
        EventOutcome(try await call(.event(event, isSticky: sticky), parameters, timeout: timeout))
    }
}

/// The outcome of an event, on the poster's stack.
private struct Posted {
    let host: UnsafePointer<plugin_host>
    /// The number of subscribers that received the event, if none failed.
    var delivered = 0
    /// Any other outcome, retained.
    var other: Unmanaged<Other>?

    final class Other {
        let outcome: Result<EventOutcome, PluginError>
        init(_ outcome: Result<EventOutcome, PluginError>) { self.outcome = outcome }
    }

    static let completion: plugin_completion = { data, value, error in
        let posted = data!.assumingMemoryBound(to: Posted.self)
        if error == nil, let delivered = value?.pointee.deliveredToAll {
            posted.pointee.delivered = delivered
        } else {
            posted.pointee.setOther(value, error)
        }
    }

    @inline(never)
    private mutating func setOther(_ value: UnsafePointer<plugin_value>?, _ error: UnsafePointer<plugin_error>?) {
        if value == nil, error == nil { return }
        other = .passRetained(Other(Result(value, error, host: host).map { EventOutcome($0) }))
    }
}

/// Converts to and from a map with `delivered` and `failures`, the form in which an outcome crosses the boundary.
extension EventOutcome: ValueConvertible {
    public static var kind: Value.Kind { .map }

    public init(_ value: Value) {
        delivered = value["delivered"]?.int ?? 0
        failures = (value["failures"]?.list ?? []).map { PluginError($0) }
    }

    public var value: Value {
        ["delivered": .int(delivered), "failures": .list(failures.map(\.record))]
    }
}

extension EventOutcome {
    /// Lends the outcome to `body` in the form in which it crosses the boundary.
    package func lend(to body: (UnsafePointer<plugin_value>) -> Void) {
        if failures.isEmpty { return Self.lend(delivered: delivered, to: body) }
        var raw = plugin_value_null()
        let owner = Parameters(positional: [value])
        withExtendedLifetime(owner) {
            if let entry = try? owner.entries.first { raw = entry.value }
            body(&raw)
        }
    }

    /// Lends the outcome of an event for which no subscriber failed.
    @inlinable
    package static func lend(delivered: Int, to body: (UnsafePointer<plugin_value>) -> Void) {
        withUnsafeTemporaryAllocation(of: plugin_entry.self, capacity: 2) { entries in
            entries[0] = plugin_entry(key: plugin_string("delivered"), value: plugin_value_int(Int64(delivered)))
            entries[1] = plugin_entry(key: plugin_string("failures"), value: plugin_value_list(nil, 0))
            var raw = plugin_value_map(entries.baseAddress, 2)
            body(&raw)
        }
    }
}

extension plugin_value {
    /// The number of subscribers that received an event, if this is the outcome of an event for which no subscriber
    /// failed.
    @inline(__always)
    fileprivate var deliveredToAll: Int? {
        guard kind == PLUGIN_KIND_MAP, count == 2, let entries = self.as.map, entries[0].key.equals("delivered"),
            entries[0].value.kind == PLUGIN_KIND_INT, entries[1].key.equals("failures"), entries[1].value.count == 0
        else { return nil }
        return Int(entries[0].value.as.integer)
    }
}
