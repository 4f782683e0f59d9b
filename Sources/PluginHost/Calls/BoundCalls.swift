import PluginABI

extension Calls {
    /// Calls a bound action on the slow path, like a call by target and action.
    func callBound(
        _ request: borrowing plugin_request, _ call: Call, _ thread: ThreadContext, _ record: CallRecord
    ) throws(PluginError) -> plugin_token {
        guard let binding = core.boundActions.binding(request.object) else {
            throw PluginError(.invalidValue, "There is no bound action with the number \(request.object).")
        }
        let (target, action) = binding._withUnsafeGuaranteedRef { ($0.target, $0.action) }
        return try self.call(target, action, request.entries, call, thread, record)
    }

    /// Calls a bound action with positional arguments on the fast path. ``dispatch(_:parent:from:mode:to:)`` does the
    /// same for requests.
    ///
    /// - Returns: Whether `result` was written; if not, the receiver has received the outcome. `nil`, without doing
    ///   anything, if the call needs the slow path.
    @inline(__always)
    func callBound(
        _ number: plugin_bound_action, _ arguments: UnsafeBufferPointer<plugin_value>, from caller: Generation,
        into result: UnsafeMutablePointer<plugin_value>, or receiver: Receiver
    ) -> Bool? {
        guard let thread = ThreadContext.current, let record = thread.next, seesPublished(caller, thread) else {
            return nil
        }
        let found = enter(record, thread, parent: thread.currentCall, from: caller) {
            core.boundActions.endpoint(number, in: $0)
        }
        guard let found else { return nil }
        let isThere = callFast(
            found, arguments, areTrusted: caller.isProgram, into: result, or: receiver, thread, record)
        if let isThere { return isThere }
        record.vacate()
        return nil
    }
}
