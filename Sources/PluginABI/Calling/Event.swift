/// What has become of an event.
public struct EventOutcome: Sendable, Hashable {
    /// How many subscribers got it, those that failed included.
    public let delivered: Int
    /// What those say that failed; the source is the module. The others have got the event all the same.
    public let failures: [PluginError]

    package init(delivered: Int, failures: [PluginError]) {
        self.delivered = delivered
        self.failures = failures
    }
}

extension HostContext {
    /// Posts an event to everybody who subscribes to it: modules in the order of their level, priority and name, then the
    /// program. Asynchronous subscribers are started; nobody waits for their end.
    ///
    /// - Parameters:
    ///   - event: A name, such as `shop.sold`. Names that begin with `host.`, `module.` or `configuration.` are the host's.
    ///   - parameters: By name. What a subscriber does not declare is left out for it.
    ///   - sticky: Modules that come later get the event, too, after their `didStart`; a later one replaces it.
    /// - Throws: ``PluginError/Code/recursionLimit`` for an event that is posted from inside its own handler again and
    ///   again; ``PluginError/Code/invalidValue`` for values that cannot cross the border.
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

    /// Posts an event, and waits until the asynchronous subscribers have ended, too. See ``post(_:_:sticky:)``.
    ///
    /// - Parameters:
    ///   - event: A name, such as `shop.sold`.
    ///   - parameters: By name. What a subscriber does not declare is left out for it.
    ///   - sticky: Modules that come later get the event, too.
    ///   - timeout: How long to wait at most. Default: as long as a subscriber may take.
    /// - Throws: As the synchronous form; ``PluginError/Code/deadlineExceeded``; ``PluginError/Code/cancelled``.
    @discardableResult
    public func post(
        _ event: String, _ parameters: Parameters = [:], sticky: Bool = false, timeout: Duration? = nil
    ) async throws(PluginError) -> EventOutcome {
        EventOutcome(try await call(.event(event, isSticky: sticky), parameters, timeout: timeout))
    }
}

/// Takes the outcome of an event, on the poster's stack.
private struct Posted {
    let host: UnsafePointer<plugin_host>
    /// Where nothing has failed: how many subscribers got it.
    var delivered = 0
    /// Retained; anything else.
    var other: Unmanaged<Other>?

    final class Other {
        let outcome: Result<EventOutcome, PluginError>
        init(_ outcome: Result<EventOutcome, PluginError>) { self.outcome = outcome }
    }

    static let completion: plugin_completion = { data, value, error in
        let posted = data!.assumingMemoryBound(to: Posted.self)
        if let error {
            posted.pointee.set(.failure(PluginError(error.pointee)))
        } else if let delivered = value?.pointee.deliveredToAll {
            posted.pointee.delivered = delivered
        } else if let value {
            posted.pointee.set(.success(EventOutcome(Value(copying: value.pointee, host: posted.pointee.host))))
        }
    }

    private mutating func set(_ outcome: Result<EventOutcome, PluginError>) {
        other = .passRetained(Other(outcome))
    }
}

/// A map with `delivered` and `failures`, as it crosses the border.
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
    /// Lends the outcome in the form in which it crosses the border.
    package func lend(to body: (UnsafePointer<plugin_value>) -> Void) {
        if failures.isEmpty { return Self.lend(delivered: delivered, to: body) }
        var raw = plugin_value_null()
        let owner = Parameters(positional: [value])
        withExtendedLifetime(owner) {
            if let entry = try? owner.withEntries({ entries, _ in entries[0] }) { raw = entry.value }
            body(&raw)
        }
    }

    /// The same where nothing has failed.
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
    /// Of the outcome of an event: how many subscribers got it, where none has failed.
    fileprivate var deliveredToAll: Int? {
        guard kind == PLUGIN_KIND_MAP, count == 2, let entries = self.as.map, entries[0].key.equals("delivered"),
            entries[0].value.kind == PLUGIN_KIND_INT, entries[1].key.equals("failures"), entries[1].value.count == 0
        else { return nil }
        return Int(entries[0].value.as.integer)
    }
}
