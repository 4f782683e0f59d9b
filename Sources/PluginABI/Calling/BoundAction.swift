/// An action whose names are resolved once, for a caller that calls it many times.
///
///     let add = host.bind("Counter", "add")
///     let sum: Int = try add(5)
///     let same = try add.perform(["n": 5])
///
/// A call has the same checks, interceptors and errors as a call by name, but no lookup. A bound action is not tied to
/// a generation: when modules are added, replaced or removed, the next call goes where a call by name would go. An
/// action can therefore be bound before its module is loaded; until then, calls fail as they do by name. A bound action
/// costs nothing to keep or copy, and can be used from any thread.
public struct BoundAction: Sendable {
    /// The name of the target.
    public let target: String
    /// The name of the action.
    public let action: String
    /// The host's table, which lives as long as the process.
    @usableFromInline nonisolated(unsafe) let host: UnsafePointer<plugin_host>
    /// The number by which the host knows the action; 0 if each call must pass the names.
    @usableFromInline let number: plugin_bound_action
    /// The host's function for typed calls; `nil` if there is no number.
    @usableFromInline let function: Function?

    @usableFromInline typealias Function =
        @convention(c) (
            UnsafePointer<plugin_host>?, plugin_bound_action, UnsafePointer<plugin_value>?, UInt32,
            UnsafeMutablePointer<plugin_value>?, plugin_completion?, UnsafeMutableRawPointer?
        ) -> Int32

    private var address: Address { number == 0 ? .action(target, action) : .bound(number) }
}

extension HostContext {
    /// Binds an action. The bound action is independent of this context's call, and can be kept.
    ///
    /// - Parameters:
    ///   - target: The name of the target, of any module. The module need not be loaded yet.
    ///   - action: The name of the action.
    public func bind(_ target: String, _ action: String) -> BoundAction {
        let bound = plugin_bound_of(host)
        let number = target.withPluginString { target in
            action.withPluginString { action in bound?.pointee.bind(host, target, action) ?? 0 }
        }
        return BoundAction(
            target: target, action: action, host: host, number: number,
            function: number == 0 ? nil : bound?.pointee.perform)
    }
}

// MARK: Calls with parameters by name or by position

extension BoundAction {
    /// Calls the action, which must be synchronous, and returns its result.
    ///
    /// - Parameters:
    ///   - parameters: By name or by position.
    ///   - context: The context of the parent call. Default: the call of the action that runs on this thread, if any.
    ///   - timeout: The timeout, as for ``HostContext/perform(_:_:_:timeout:)``.
    /// - Throws: The errors of ``HostContext/perform(_:_:_:timeout:)``.
    @discardableResult
    public func perform(
        _ parameters: Parameters = [:], in context: HostContext? = nil, timeout: Duration? = nil
    ) throws(PluginError) -> Value {
        try HostContext(host: host, call: context?.call ?? 0).perform(address, parameters, timeout: timeout)
    }

    /// Calls the action, synchronous or asynchronous, without blocking a thread.
    ///
    /// - Parameters:
    ///   - parameters: By name or by position.
    ///   - context: The context of the parent call.
    ///   - timeout: The timeout, as for ``HostContext/call(_:_:_:timeout:)``.
    /// - Throws: The errors of ``HostContext/call(_:_:_:timeout:)``.
    @discardableResult
    public func call(
        _ parameters: Parameters = [:], in context: HostContext? = nil, timeout: Duration? = nil
    ) async throws(PluginError) -> Value {
        try await HostContext(host: host, call: context?.call ?? 0).call(address, parameters, timeout: timeout)
    }
}

// MARK: Typed calls

// Scalar arguments and results need no memory allocation. For more parameters, use `perform`.

extension BoundAction {
    /// Calls the action, which must be synchronous, without parameters.
    ///
    /// - Returns: The result, converted to the type that the caller expects.
    /// - Throws: The errors of ``HostContext/perform(_:_:_:timeout:)``; ``PluginError/Code/invalidResult`` if the
    ///   result is not of that type.
    @inlinable
    public func callAsFunction<R: ValueConvertible>() throws(PluginError) -> R {
        var outcome = BoundOutcome(host: host)
        perform(nil, 0, &outcome)
        return try result(outcome)
    }

    /// Calls the action with one parameter. See ``callAsFunction()``.
    @inlinable
    public func callAsFunction<A: ValueConvertible, R: ValueConvertible>(_ a: A) throws(PluginError) -> R {
        var outcome = BoundOutcome(host: host)
        try a.lend { a in withUnsafePointer(to: a) { perform($0, 1, &outcome) } }
        return try result(outcome)
    }

    /// Calls the action with two parameters, in declared order. See ``callAsFunction()``.
    @inlinable
    public func callAsFunction<A: ValueConvertible, B: ValueConvertible, R: ValueConvertible>(
        _ a: A, _ b: B
    ) throws(PluginError) -> R {
        var outcome = BoundOutcome(host: host)
        try a.lend { a in
            outcome.attempt { (outcome) throws(PluginError) in try b.lend { b in perform([a, b], &outcome) } }
        }
        return try result(outcome)
    }

    /// Calls the action with three parameters, in declared order. See ``callAsFunction()``.
    @inlinable
    public func callAsFunction<A: ValueConvertible, B: ValueConvertible, C: ValueConvertible, R: ValueConvertible>(
        _ a: A, _ b: B, _ c: C
    ) throws(PluginError) -> R {
        var outcome = BoundOutcome(host: host)
        try a.lend { a in
            outcome.attempt { (outcome) throws(PluginError) in
                try b.lend { b in
                    outcome.attempt { (outcome) throws(PluginError) in
                        try c.lend { c in perform([a, b, c], &outcome) }
                    }
                }
            }
        }
        return try result(outcome)
    }

    @inlinable
    func perform<let count: Int>(_ arguments: InlineArray<count, plugin_value>, _ outcome: inout BoundOutcome) {
        arguments.span.withUnsafeBufferPointer { perform($0.baseAddress, count, &outcome) }
    }

    @inlinable
    func perform(_ arguments: UnsafePointer<plugin_value>?, _ count: Int, _ outcome: inout BoundOutcome) {
        guard let function else { return performAsRequest(arguments, count, &outcome) }
        withUnsafeMutablePointer(to: &outcome) { outcome in
            _ = function(
                host, number, arguments, UInt32(count), outcome.pointer(to: \.scalar),
                { BoundOutcome.receive($0!, $1, $2) }, outcome)
        }
    }

    @usableFromInline
    func performAsRequest(_ arguments: UnsafePointer<plugin_value>?, _ count: Int, _ outcome: inout BoundOutcome) {
        outcome.attempt { (outcome) throws(PluginError) in
            let arguments = UnsafeBufferPointer(start: arguments, count: count)
            outcome.set(.success(try perform(Parameters(positional: arguments.map { Value(copying: $0, host: host) }))))
        }
    }

    @inlinable
    func result<R: ValueConvertible>(_ outcome: BoundOutcome) throws(PluginError) -> R {
        if let other = outcome.other { return try convert(other.takeRetainedValue()) }
        do throws(PluginError) { return try R.read(outcome.scalar, host: host) } catch { throw mistyped(error) }
    }

    @usableFromInline
    func convert<R: ValueConvertible>(_ outcome: OtherOutcome) throws(PluginError) -> R {
        let value = try outcome.result.get()
        do throws(PluginError) { return try R(value) } catch { throw mistyped(error) }
    }

    @usableFromInline
    func mistyped(_ error: PluginError) -> PluginError {
        .invalidResult(error, of: "\(target)/\(action)")
    }
}

/// The outcome of a typed call, on the caller's stack: a scalar is stored in place, anything else in a box.
@usableFromInline struct BoundOutcome {
    @usableFromInline let host: UnsafePointer<plugin_host>
    @usableFromInline var scalar: plugin_value
    /// Any other outcome, retained; `nil` for a scalar.
    @usableFromInline var other: Unmanaged<OtherOutcome>?

    @inlinable init(host: UnsafePointer<plugin_host>) {
        self.host = host
        scalar = plugin_value_null()
    }

    mutating func set(_ outcome: Result<Value, PluginError>) { other = .passRetained(OtherOutcome(outcome)) }

    /// Runs a step of the call. If the step throws an error, that error becomes the outcome.
    @usableFromInline mutating func attempt(_ step: (inout BoundOutcome) throws(PluginError) -> Void) {
        do throws(PluginError) { try step(&self) } catch { set(.failure(error)) }
    }

    /// Receives an outcome that the host did not write to `scalar`.
    @usableFromInline
    static func receive(
        _ data: UnsafeMutableRawPointer, _ value: UnsafePointer<plugin_value>?, _ error: UnsafePointer<plugin_error>?
    ) {
        let outcome = data.assumingMemoryBound(to: BoundOutcome.self)
        if let value, value.pointee.kind <= PLUGIN_KIND_DOUBLE {
            outcome.pointee.scalar = value.pointee
        } else if let value {
            outcome.pointee.set(.success(Value(copying: value.pointee, host: outcome.pointee.host)))
        } else if let error {
            outcome.pointee.set(.failure(PluginError(error.pointee)))
        }
    }
}

@usableFromInline final class OtherOutcome {
    let result: Result<Value, PluginError>
    init(_ result: Result<Value, PluginError>) { self.result = result }
}
