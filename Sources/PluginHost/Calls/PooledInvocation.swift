import CPluginABI
import CPluginHost
import PluginABI

// Calls that can outlive the function that makes them: they use a record of the pool.

extension Calls {
    /// The fast path of almost every call of an asynchronous action, like ``callFast(_:_:areTrusted:_:_:_:)`` for
    /// synchronous ones. Returns `nil`, without doing anything, for any other call.
    func beginFast(
        _ found: Unmanaged<Endpoint>, _ entries: UnsafeBufferPointer<plugin_entry>, parent: plugin_token,
        from caller: Generation, to receiver: Receiver, _ thread: ThreadContext, _ record: CallRecord
    ) -> plugin_token? {
        found._withUnsafeGuaranteedRef { endpoint in
            guard endpoint.callPath == .fastAsync, isFree(endpoint, record) else { return nil }
            return withUnsafeTemporaryAllocation(of: plugin_value.self, capacity: Endpoint.fastParameters) {
                arguments in
                guard endpoint.take(entries, as: arguments, areTrusted: caller.isProgram) else { return nil }
                let call = Call(
                    parent: parent, timeout: 0, isRemote: false, mode: .any, receiver: receiver,
                    caller: .passUnretained(caller))
                return try? beginPooled(
                    endpoint, UnsafeBufferPointer(start: arguments.baseAddress, count: entries.count), call, thread,
                    record, instance: nil)
            }
        }
    }

    /// Moves the call to a record of the pool, where it can outlive this function, and starts it, now or when the gate
    /// admits it.
    @inline(__always)
    func beginPooled(
        _ endpoint: Endpoint, _ arguments: UnsafeBufferPointer<plugin_value>, _ call: Call, _ thread: ThreadContext,
        _ mirror: CallRecord, instance: UnsafeMutableRawPointer?
    ) throws(PluginError) -> plugin_token {
        guard let record = RecordPool.take() else { throw .tooManyCalls }
        let timeout = call.timeout > 0 ? call.timeout : endpoint.isAsync ? settings.asyncTimeout : 0
        let deadline = deadline(in: timeout, from: mirror.since)
        record.occupy(
            .passUnretained(endpoint), parent: call.parent, depth: mirror.depth, caller: call.caller,
            since: mirror.since)
        record.object = mirror.object
        record.retain()
        record.pointer.pointee.started = thread.count(endpoint) ? monotonicNow() : 0
        let token = record.open(call.receiver.completion, call.receiver.data, deadline: deadline)
        guard let gate = endpoint.gate, !gate.enterIfFree(record) else {
            startPooled(endpoint, arguments, call, thread, mirror, record, token, deadline, instance)
            return record.phase(of: token) == .over ? 0 : token
        }
        mirror.vacate()
        let copies = Parameters(
            positional: arguments.map { Value(copying: $0, host: endpoint.generation.hostTable) })
        let pending = PendingStart(
            endpoint: endpoint, arguments: copies, call: call, record: record, token: token, deadline: deadline,
            instance: instance)
        do throws(PluginError) {
            let isInside = try gate.enter(record) { self.startPooled(pending) }
            if isInside { startPooled(pending) } else if deadline != 0 { Deadlines.note(deadline) }
        } catch {
            fail(record, token, error)
            release(record, endpoint, leavesGate: false)
            return 0
        }
        return record.phase(of: token) == .over ? 0 : token
    }

    /// A call that waits at its gate. Immutable, and used only by the thread that starts the call; hence `@unchecked
    /// Sendable`.
    private struct PendingStart: @unchecked Sendable {
        let endpoint: Endpoint
        let arguments: Parameters
        let call: Call
        let record: CallRecord
        let token: plugin_token
        let deadline: Int64
        let instance: UnsafeMutableRawPointer?
    }

    private func startPooled(_ pending: PendingStart) {
        let (endpoint, record, token) = (pending.endpoint, pending.record, pending.token)
        guard record.phase(of: token) == .open, let thread = ThreadContext.current, let mirror = thread.next else {
            // The caller no longer waits (or this thread's records are used up, which does not happen on a pool
            // thread): the call never starts.
            fail(record, token, .recursionLimit)
            release(record, endpoint, leavesGate: true)
            return
        }
        mirror.occupy(.passUnretained(endpoint), parent: 0, depth: record.depth, caller: pending.call.caller)
        do throws(PluginError) {
            try pending.arguments.lend { entries in
                entries.map(\.value).withUnsafeBufferPointer {
                    startPooled(
                        endpoint, $0, pending.call, thread, mirror, record, token, pending.deadline, pending.instance)
                }
            }
        } catch {
            mirror.vacate()
            fail(record, token, error)
            release(record, endpoint, leavesGate: true)
        }
    }

    private func startPooled(
        _ endpoint: Endpoint, _ arguments: UnsafeBufferPointer<plugin_value>, _ call: Call, _ thread: ThreadContext,
        _ mirror: CallRecord, _ record: CallRecord, _ token: plugin_token, _ deadline: Int64,
        _ instance: UnsafeMutableRawPointer?
    ) {
        mirror.pointer.pointee.stands_for = token
        thread.push()
        do throws(PluginError) {
            try run(endpoint, arguments, call, record, token, deadline, instance)
        } catch {
            fail(record, token, error)
        }
        thread.pop()
        mirror.vacate()
        if !endpoint.isAsync {
            finish(endpoint, record, token)
        } else if deadline != 0, record.phase(of: token) == .open {
            Deadlines.note(deadline)
        }
        release(record, endpoint, leavesGate: true)
    }

    /// Releases a record of the pool; the last release cleans up after the call.
    func release(_ record: CallRecord, _ endpoint: Endpoint, leavesGate: Bool) {
        if !leavesGate { record.pointer.pointee.flags = CallRecord.isOutsideGate }
        guard record.release() else { return }
        if let own = record.pointer.pointee.instance { endpoint.instances?.destroy(own) }
        if record.pointer.pointee.flags & CallRecord.isOutsideGate == 0 { endpoint.gate?.leave() }
        record.pointer.pointee.flags = 0
        let object = record.object
        RecordPool.giveBack(record)
        if object != 0 { _ = ObjectTable.release(object) }
    }

    // MARK: Replies

    /// Ends a call for its caller, while the action continues. Only for calls in the pool. Does nothing if the caller
    /// is already receiving another outcome.
    static func abandon(_ token: plugin_token, _ error: PluginError) {
        guard let record = CallRecord(token: token), record.pointer.pointee.is_pooled != 0,
            record.beginFirstReply(token)
        else { return }
        let tellCancelHandler = record.takeCancelHandler()
        error.lend { record.complete(token, nil, $0) }
        record.close(token, .abandoned)
        tellCancelHandler(true)
    }

    /// Ends a reply that this thread began.
    @inline(__always)
    func finishReply(_ record: CallRecord, _ token: plugin_token) {
        if record.pointer.pointee.is_pooled == 0 { record.close(token) } else { finishPooledReply(record, token) }
    }

    private func finishPooledReply(_ record: CallRecord, _ token: plugin_token) {
        guard let endpoint = record.unretainedEndpoint else { return record.close(token) }
        endpoint._withUnsafeGuaranteedRef { endpoint in  // Never freed.
            let start = record.pointer.pointee.started
            if start != 0 { endpoint.durations.add(since: start) }
            let tellCancelHandler = record.takeCancelHandler()
            record.close(token)
            tellCancelHandler(false)
            release(record, endpoint, leavesGate: true)
        }
    }
}
