import CPluginABI
import CPluginHost
import Glibc
import PluginABI
import Synchronization

// The second half of the call path: the endpoint is found and its record occupied; the remaining steps are check, bind,
// invoke and reply. A function that throws has called no completion; `dispatch` passes the error to the receiver.

extension Calls {
    /// Enters a call in a record, which makes its generation count as busy.
    @inline(__always)
    func occupy(_ record: CallRecord, _ endpoint: Unmanaged<Endpoint>, _ call: Call) {
        occupy(record, endpoint, parent: call.parent, caller: call.caller)
    }

    @inline(__always)
    func occupy(
        _ record: CallRecord, _ endpoint: Unmanaged<Endpoint>, parent: plugin_token, caller: Unmanaged<Generation>?
    ) {
        let above = parent == 0 ? nil : CallRecord.read(parent) { $0.depth }
        record.occupy(endpoint, parent: parent, depth: (above ?? 0) + 1, caller: caller)
    }

    /// Checks the call, binds its arguments and runs the endpoint.
    func invoke(
        _ endpoint: Endpoint, _ entries: UnsafeBufferPointer<plugin_entry>, _ call: Call, _ thread: ThreadContext,
        _ record: CallRecord, instance: UnsafeMutableRawPointer? = nil
    ) throws(PluginError) -> plugin_token {
        if endpoint.isBlocked.load(ordering: .relaxed), let barrier = try barrier(of: endpoint, for: call) {
            return try wait(for: barrier, endpoint, entries, call, thread, record, instance)
        }
        try check(endpoint, call, record)
        let isPooled = endpoint.isAsync || (call.mode == .any && endpoint.gate != nil)
        let count = endpoint.argumentCount(for: entries)
        return try withUnsafeTemporaryAllocation(of: plugin_value.self, capacity: count) {
            (arguments) throws(PluginError) in
            let rest = try endpoint.bind(entries, to: arguments)
            defer { rest?.deallocate() }
            let bound = UnsafeBufferPointer(arguments)
            if isPooled { return try beginPooled(endpoint, bound, call, thread, record, instance: instance) }
            runHere(endpoint, bound, call, thread, record, instance: instance)
            return 0
        }
    }

    /// Checks whether the call is allowed, whatever its parameters.
    @inline(__always)
    func check(_ endpoint: Endpoint, _ call: Call, _ record: CallRecord) throws(PluginError) {
        if record.depth > PLUGIN_DEPTH_MAX, CallContexts.level(record.depth) > PLUGIN_DEPTH_MAX {
            throw .recursionLimit
        }
        if call.isRemote, !endpoint.isRemote { throw .notRemote(endpoint) }
        if endpoint.isAsync, call.mode == .synchronous { throw .asynchronous(endpoint) }
    }

    // MARK: On this thread

    /// The fast path of almost every call, as a single function: an action that runs immediately on this thread, with
    /// parameters that match its declaration exactly. The caller has checked that the call comes from this process and
    /// sets no timeout (`isPlain`), and has occupied its record.
    ///
    /// - Parameter areTrusted: Whether the values need no check: those of the program, and those that were checked.
    /// - Returns: False, without doing anything, for any other action or if a value is not sound;
    ///   ``invoke(_:_:_:_:_:instance:)`` can call all actions.
    @inline(__always)
    func callFast(
        _ found: Unmanaged<Endpoint>, _ entries: UnsafeBufferPointer<plugin_entry>, areTrusted: Bool,
        _ receiver: Receiver, _ thread: ThreadContext, _ record: CallRecord
    ) -> Bool {
        found._withUnsafeGuaranteedRef { endpoint in
            guard endpoint.callPath == .fast, isFree(endpoint, record) else { return false }
            return withUnsafeTemporaryAllocation(of: plugin_value.self, capacity: Endpoint.fastParameters) {
                arguments in
                guard endpoint.take(entries, as: arguments, areTrusted: areTrusted) else { return false }
                runFast(endpoint, receiver, thread, record) { token, result in
                    invoke(endpoint, arguments.baseAddress, entries.count, token, result)
                }
                return true
            }
        }
    }

    /// The fast path for arguments that are already in order, and a caller that provides memory for the result.
    ///
    /// - Parameter areTrusted: Whether the arguments need no check.
    /// - Returns: Whether `result` was written; if not, the receiver has received the outcome. `nil`, without doing
    ///   anything, for any other action.
    @inline(__always)
    func callFast(
        _ found: Unmanaged<Endpoint>, _ arguments: UnsafeBufferPointer<plugin_value>, areTrusted: Bool,
        into result: UnsafeMutablePointer<plugin_value>, or receiver: Receiver, _ thread: ThreadContext,
        _ record: CallRecord
    ) -> Bool? {
        found._withUnsafeGuaranteedRef { endpoint in
            guard endpoint.callPath == .fast, isFree(endpoint, record), endpoint.takes(arguments),
                areTrusted || arguments.areSound
            else { return nil }
            return inRecord(endpoint, receiver, thread, record) { token in
                withResult { written in
                    // No action receives a null pointer, even if it has no arguments.
                    let start = arguments.baseAddress ?? UnsafePointer(written)
                    invoke(endpoint, start, arguments.count, token, written)
                    return finish(endpoint, record, token, written, into: result)
                }
            }
        }
    }

    /// Calls the function of an action whose `callPath` is `fast`.
    @inline(__always)
    private func invoke(
        _ endpoint: Endpoint, _ arguments: UnsafePointer<plugin_value>?, _ count: Int, _ token: plugin_token,
        _ result: UnsafeMutablePointer<plugin_value>
    ) {
        var context = plugin_call(
            size: UInt32(MemoryLayout<plugin_call>.size), flags: PLUGIN_CALL_IN_PLACE, token: token,
            instance: nil, deadline: 0, result: result)
        endpoint.invoke(endpoint.data, &context, arguments, UInt32(truncatingIfNeeded: count))
    }

    /// Runs a call that can no longer be refused, in its record of this thread context, and frees the record
    /// afterwards.
    ///
    /// - Parameter body: Replies to the call with this token, or writes its result.
    @inline(__always)
    private func runFast(
        _ endpoint: Endpoint, _ receiver: Receiver, _ thread: ThreadContext, _ record: CallRecord,
        _ body: (plugin_token, UnsafeMutablePointer<plugin_value>) -> Void
    ) {
        inRecord(endpoint, receiver, thread, record) { token in
            withResult { result in
                body(token, result)
                finish(endpoint, record, token, result, deadline: 0)
            }
        }
    }

    /// Opens the call's record of this thread context, runs `body`, which must reply to the call, and frees the record.
    @inline(__always)
    func inRecord<Result>(
        _ endpoint: Endpoint, _ receiver: Receiver, _ thread: ThreadContext, _ record: CallRecord,
        _ body: (plugin_token) -> Result
    ) -> Result {
        let start = thread.count(endpoint) ? monotonicNow() : 0
        let token = record.open(receiver.completion, receiver.data, deadline: 0, in: thread)
        thread.push()
        let result = body(token)
        if start != 0 { endpoint.durations.add(since: start) }
        record.vacate()
        thread.pop()
        return result
    }

    /// Returns whether a call on the fast path can be refused only because of its parameters. False for calls with
    /// a call context.
    @inline(__always)
    func isFree(_ endpoint: Endpoint, _ record: CallRecord) -> Bool {
        !endpoint.isBlocked.load(ordering: .relaxed) && record.depth <= PLUGIN_DEPTH_MAX
    }

    /// Runs a synchronous call to its end, in its record of this thread context.
    @inline(__always)
    private func runHere(
        _ endpoint: Endpoint, _ arguments: UnsafeBufferPointer<plugin_value>, _ call: Call, _ thread: ThreadContext,
        _ record: CallRecord, instance: UnsafeMutableRawPointer?
    ) {
        let deadline = deadline(in: call.timeout, from: record.since)
        let start = thread.count(endpoint) ? monotonicNow() : 0
        let token = record.open(call.receiver.completion, call.receiver.data, deadline: deadline, in: thread)
        thread.push()
        var isInside = false
        withResult { result in
            do throws(PluginError) {
                try endpoint.gate?.enter(record)
                isInside = true
                try run(endpoint, arguments, call, record, token, deadline, instance, result)
            } catch {
                fail(record, token, error)
            }
            finish(endpoint, record, token, result, deadline: deadline)
        }
        if start != 0 { endpoint.durations.add(since: start) }
        if let own = record.pointer.pointee.instance { endpoint.instances?.destroy(own) }
        if isInside { endpoint.gate?.leave() }
        let object = record.object
        record.vacate()
        thread.pop()
        if object != 0 { _ = ObjectTable.release(object) }
    }

    /// Gets the instance and calls the module.
    ///
    /// - Parameter result: The memory to which the action may write its result; `nil` if it replies by its token.
    @inline(__always)
    func run(
        _ endpoint: Endpoint, _ arguments: UnsafeBufferPointer<plugin_value>, _ call: Call, _ record: CallRecord,
        _ token: plugin_token, _ deadline: Int64, _ instance: UnsafeMutableRawPointer?,
        _ result: UnsafeMutablePointer<plugin_value>? = nil
    ) throws(PluginError) {
        var context = plugin_call(
            size: UInt32(MemoryLayout<plugin_call>.size), flags: call.isRemote ? PLUGIN_CALL_REMOTE : 0, token: token,
            instance: instance, deadline: deadline, result: nil)
        if let instances = endpoint.instances {
            let isOwn = call.isFresh || !instances.isShared
            let made = try isOwn ? instances.make(&context) : instances.instance(for: record, &context)
            context.instance = made
            if isOwn { record.pointer.pointee.instance = made }
        }
        if let result {  // Set after the factory has run, which receives the same call but must not write a result.
            context.flags |= PLUGIN_CALL_IN_PLACE
            context.result = result
        }
        endpoint.invoke(endpoint.data, &context, arguments.baseAddress, UInt32(arguments.count))
    }

    /// Lends memory to which a synchronous action may write its result.
    @inline(__always)
    private func withResult<Result>(_ body: (UnsafeMutablePointer<plugin_value>) -> Result) -> Result {
        var result = plugin_value(kind: PLUGIN_KIND_NONE, count: 0, as: .init())
        return withUnsafeMutablePointer(to: &result, body)
    }

    /// Passes on the result that a synchronous action has written, and makes sure that the call has a reply.
    @inline(__always)
    private func finish(
        _ endpoint: Endpoint, _ record: CallRecord, _ token: plugin_token, _ result: UnsafePointer<plugin_value>,
        deadline: Int64
    ) {
        let kind = result.pointee.kind
        if kind <= PLUGIN_KIND_DOUBLE, !isOver(deadline), record.answer(token, result) { return }
        finishOther(kind, endpoint, record, token)
    }

    /// Passes on the result to a caller that provides memory for it. The receiver need not be called, so the call is
    /// over immediately.
    ///
    /// - Returns: Whether `result` was written. If not, it is unchanged: the receiver may store the outcome there.
    @inline(__always)
    private func finish(
        _ endpoint: Endpoint, _ record: CallRecord, _ token: plugin_token, _ written: UnsafePointer<plugin_value>,
        into result: UnsafeMutablePointer<plugin_value>
    ) -> Bool {
        let kind = written.pointee.kind
        if kind <= PLUGIN_KIND_DOUBLE, record.move(token, from: .open, to: .over) {
            result.initialize(byWordsOf: written.pointee)
            return true
        }
        finishOther(kind, endpoint, record, token)
        return false
    }

    /// Makes sure that a call has a reply if its action has not written a usable result.
    @inline(__always)
    private func finishOther(_ kind: UInt32, _ endpoint: Endpoint, _ record: CallRecord, _ token: plugin_token) {
        if kind == PLUGIN_KIND_NONE {
            finish(endpoint, record, token)
        } else {
            refuseResult(kind, endpoint, record, token)
        }
    }

    /// Makes sure that a synchronous call has a reply when its function has returned.
    @inline(__always)
    func finish(_ endpoint: Endpoint, _ record: CallRecord, _ token: plugin_token) {
        if record.phase(of: token) != .over { failUnanswered(endpoint, record, token) }
    }

    @inline(never)
    private func failUnanswered(_ endpoint: Endpoint, _ record: CallRecord, _ token: plugin_token) {
        fail(
            record, token,
            PluginError(
                .noReply, "\(endpoint.title) returned without a reply. It must reply before it returns.",
                source: endpoint.generation.name))
        waitForOther(record, token)
    }

    /// Refuses the result that an action has written, because it is invalid or too late.
    @inline(never)
    private func refuseResult(_ kind: UInt32, _ endpoint: Endpoint, _ record: CallRecord, _ token: plugin_token) {
        let failure =
            kind <= PLUGIN_KIND_DOUBLE
            ? .deadlineExceeded(endpoint)  // Or it already has a reply: then this error is not reported.
            : PluginError(
                .invalidResult,
                "\(endpoint.title) wrote a value of the kind \(kind) as its result, which may only be null, a bool, an int "
                    + "or a double. Any other value must be passed to the host in a reply.",
                source: endpoint.generation.name)
        if !fail(record, token, failure) {
            reportStaleReply(token, endpoint.generation)
            waitForOther(record, token)
        }
    }

    /// Waits while another thread is replying, because that thread uses the record until it has finished.
    private func waitForOther(_ record: CallRecord, _ token: plugin_token) {
        while record.phase(of: token) == .replying { sched_yield() }
    }

    /// Replies with an error of the host in place of the action. Returns false if another thread has replied or is
    /// replying.
    @discardableResult
    func fail(_ record: CallRecord, _ token: plugin_token, _ failure: PluginError) -> Bool {
        guard let phase = record.beginReply(token) else { return false }
        if phase == .open { failure.lend { record.complete(token, nil, $0) } }
        finishReply(record, token)
        return true
    }
}
