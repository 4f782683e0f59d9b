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
        EventOutcome(try perform(.event(event, isSticky: sticky), parameters))
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

/// A map with `delivered` and `failures`, as it crosses the border.
extension EventOutcome: ValueConvertible {
    public static var kind: Value.Kind { .map }

    public init(_ value: Value) {
        delivered = value["delivered"]?.int ?? 0
        failures = (value["failures"]?.list ?? []).map { failure in
            PluginError(
                .init(rawValue: failure["code"]?.string ?? ""), failure["message"]?.string ?? "",
                source: failure["source"]?.string)
        }
    }

    public var value: Value {
        let failures = failures.map { failure -> Value in
            var entries: [String: Value] = [
                "code": .string(failure.code.rawValue), "message": .string(failure.message),
            ]
            if let source = failure.source { entries["source"] = .string(source) }
            return .map(entries)
        }
        return ["delivered": .int(delivered), "failures": .list(failures)]
    }
}
