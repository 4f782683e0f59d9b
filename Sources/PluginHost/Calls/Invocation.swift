import CPluginABI
import CPluginHost
import Glibc
import PluginABI
import Synchronization

// The second half of the call path: an endpoint is found and its record occupied; now check, bind, invoke, settle.
// Whoever throws here has called no completion, and the caller's receiver is told by `dispatch`.

extension Calls {
    /// Enters a call in a record, by which its generation counts as busy.
    @inline(__always)
    func occupy(_ record: CallRecord, _ endpoint: Unmanaged<Endpoint>, _ call: Call) {
        occupy(record, endpoint, parent: call.parent, caller: call.caller)
    }

    @inline(__always)
    func occupy(
        _ record: CallRecord, _ endpoint: Unmanaged<Endpoint>, parent: plugin_token, caller: Unmanaged<Generation>?
    ) {
        var depth: UInt32 = 1
        if parent != 0, let above = CallRecord(token: parent) {
            let found = above.depth
            if above.phase(of: parent) != .over { depth = found + 1 }
        }
        record.occupy(endpoint, parent: parent, depth: depth, caller: caller)
    }

    /// Checks the call, binds its arguments and runs the endpoint.
    func invoke(
        _ endpoint: Endpoint, _ entries: UnsafeBufferPointer<plugin_entry>, _ call: Call, _ lane: Lane,
        _ record: CallRecord, instance: UnsafeMutableRawPointer? = nil
    ) throws(PluginError) -> plugin_token {
        if endpoint.isHeld.load(ordering: .relaxed), let hold = try hold(of: endpoint, for: call) {
            return try wait(for: hold, endpoint, entries, call, lane, record, instance)
        }
        try check(endpoint, call, record)
        let isPooled = endpoint.isAsync || (call.mode == .any && endpoint.gate != nil)
        let count = endpoint.isVariadic ? entries.count : endpoint.parameters.count
        return try withUnsafeTemporaryAllocation(of: plugin_value.self, capacity: count) {
            (arguments) throws(PluginError) in
            try endpoint.bind(entries, to: arguments)
            let bound = UnsafeBufferPointer(arguments)
            if isPooled { return try beginPooled(endpoint, bound, call, lane, record, instance: instance) }
            runHere(endpoint, bound, call, lane, record, instance: instance)
            return 0
        }
    }

    /// Whether the call may be made, whatever its parameters.
    @inline(__always)
    func check(_ endpoint: Endpoint, _ call: Call, _ record: CallRecord) throws(PluginError) {
        if record.depth > PLUGIN_DEPTH_MAX { throw .recursionLimit }
        if call.isRemote, !endpoint.isRemote { throw .notRemote(endpoint) }
        if endpoint.isAsync, call.mode == .synchronous { throw .asynchronous(endpoint) }
    }

    // MARK: On this thread

    /// The way of almost every call, in one piece: an action that runs here and at once, with parameters just as it
    /// declares them. The caller has checked that it comes from this process and sets no timeout (`isPlain`), and has
    /// occupied its record.
    ///
    /// - Returns: false, with nothing done, for any other action; ``invoke(_:_:_:_:_:instance:)`` is for all.
    @inline(__always)
    func callStraight(
        _ found: Unmanaged<Endpoint>, _ entries: UnsafeBufferPointer<plugin_entry>, _ receiver: Receiver,
        _ lane: Lane, _ record: CallRecord
    ) -> Bool {
        found._withUnsafeGuaranteedRef { endpoint in
            guard endpoint.way == .straight, isFree(endpoint, record) else { return false }
            return withUnsafeTemporaryAllocation(of: plugin_value.self, capacity: Endpoint.straightParameters) {
                arguments in
                guard endpoint.take(entries, as: arguments) else { return false }
                runStraight(endpoint, receiver, lane, record) { token, result in
                    invoke(endpoint, arguments.baseAddress, entries.count, token, result)
                }
                return true
            }
        }
    }

    /// The same for arguments that stand in order already, and a caller who has a place for the result.
    ///
    /// - Parameter areTrusted: Whether the arguments need not be checked.
    /// - Returns: Whether the result is there; if not, the receiver has been told. Nil, with nothing done, for any other
    ///   action.
    @inline(__always)
    func callStraight(
        _ found: Unmanaged<Endpoint>, _ arguments: UnsafeBufferPointer<plugin_value>, areTrusted: Bool,
        into result: UnsafeMutablePointer<plugin_value>, or receiver: Receiver, _ lane: Lane, _ record: CallRecord
    ) -> Bool? {
        found._withUnsafeGuaranteedRef { endpoint in
            guard endpoint.way == .straight, isFree(endpoint, record), endpoint.takes(arguments),
                areTrusted || arguments.areSound
            else { return nil }
            return inRecord(endpoint, receiver, lane, record) { token in
                withResult { written in
                    // No action gets a null pointer, however few its arguments are.
                    let start = arguments.baseAddress ?? UnsafePointer(written)
                    invoke(endpoint, start, arguments.count, token, written)
                    return settle(endpoint, record, token, written, into: result)
                }
            }
        }
    }

    /// Calls the function of an action that is straight.
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

    /// Runs what cannot fail any more before it begins, in its record of this lane, which is free after that.
    ///
    /// - Parameter body: Answers the call of the token, or writes its result.
    @inline(__always)
    func runStraight(
        _ endpoint: Endpoint, _ receiver: Receiver, _ lane: Lane, _ record: CallRecord,
        _ body: (plugin_token, UnsafeMutablePointer<plugin_value>) -> Void
    ) {
        inRecord(endpoint, receiver, lane, record) { token in
            withResult { result in
                body(token, result)
                settle(endpoint, record, token, result, deadline: 0)
            }
        }
    }

    /// Opens the record of this lane for what settles its call itself, and frees it after that.
    @inline(__always)
    private func inRecord<Result>(
        _ endpoint: Endpoint, _ receiver: Receiver, _ lane: Lane, _ record: CallRecord, _ body: (plugin_token) -> Result
    ) -> Result {
        let start = lane.count(endpoint) ? monotonicNow() : 0
        let token = record.open(receiver.completion, receiver.data, deadline: 0, in: lane)
        lane.push()
        let result = body(token)
        if start != 0 { endpoint.durations.add(since: start) }
        record.vacate()
        lane.pop()
        return result
    }

    /// Whether nothing but its parameters can stand in the way of a straight call.
    @inline(__always)
    private func isFree(_ endpoint: Endpoint, _ record: CallRecord) -> Bool {
        !endpoint.isHeld.load(ordering: .relaxed) && record.depth <= PLUGIN_DEPTH_MAX
    }

    /// Runs a synchronous call to its end, in the record of this lane.
    @inline(__always)
    private func runHere(
        _ endpoint: Endpoint, _ arguments: UnsafeBufferPointer<plugin_value>, _ call: Call, _ lane: Lane,
        _ record: CallRecord, instance: UnsafeMutableRawPointer?
    ) {
        let deadline = deadline(in: call.timeout, from: record.since)
        let start = lane.count(endpoint) ? monotonicNow() : 0
        let token = record.open(call.receiver.completion, call.receiver.data, deadline: deadline, in: lane)
        lane.push()
        var isInside = false
        withResult { result in
            do throws(PluginError) {
                try endpoint.gate?.enter(record)
                isInside = true
                try run(endpoint, arguments, call, record, token, deadline, instance, result)
            } catch {
                fail(record, token, error)
            }
            settle(endpoint, record, token, result, deadline: deadline)
        }
        if start != 0 { endpoint.durations.add(since: start) }
        if let own = record.pointer.pointee.instance { endpoint.instances?.destroy(own) }
        if isInside { endpoint.gate?.leave() }
        let object = record.object
        record.vacate()
        lane.pop()
        if object != 0 { _ = ObjectTable.release(object) }
    }

    /// Gets the instance and calls into the module.
    ///
    /// - Parameter result: Where the action may write its result; nil for one that replies by its token.
    @inline(__always)
    private func run(
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
        if let result {  // Set behind the factory, which gets the same call and has no result.
            context.flags |= PLUGIN_CALL_IN_PLACE
            context.result = result
        }
        endpoint.invoke(endpoint.data, &context, arguments.baseAddress, UInt32(arguments.count))
    }

    /// Lends the place to which a synchronous action may write its result.
    @inline(__always)
    private func withResult<Result>(_ body: (UnsafeMutablePointer<plugin_value>) -> Result) -> Result {
        var result = plugin_value(kind: PLUGIN_KIND_NONE, count: 0, as: .init())
        return withUnsafeMutablePointer(to: &result, body)
    }

    /// Passes on what a synchronous action has written as its result, and makes sure that the call has been answered.
    @inline(__always)
    private func settle(
        _ endpoint: Endpoint, _ record: CallRecord, _ token: plugin_token, _ result: UnsafePointer<plugin_value>,
        deadline: Int64
    ) {
        let kind = result.pointee.kind
        if kind <= PLUGIN_KIND_DOUBLE, !isOver(deadline), record.answer(token, result) { return }
        settleOther(kind, endpoint, record, token)
    }

    /// The same for a caller who has a place for the result; who need not be told, so the call is over at once.
    ///
    /// - Returns: Whether the result is there. If not, nothing has been written to the caller's place, which may be where
    ///   the receiver keeps what it has been told.
    @inline(__always)
    private func settle(
        _ endpoint: Endpoint, _ record: CallRecord, _ token: plugin_token, _ written: UnsafePointer<plugin_value>,
        into result: UnsafeMutablePointer<plugin_value>
    ) -> Bool {
        let kind = written.pointee.kind
        if kind <= PLUGIN_KIND_DOUBLE, record.move(token, from: .open, to: .over) {
            result.initialize(byWordsOf: written.pointee)
            return true
        }
        settleOther(kind, endpoint, record, token)
        return false
    }

    /// Makes sure that a call has been answered whose action has written nothing that it could be answered with.
    @inline(__always)
    private func settleOther(_ kind: UInt32, _ endpoint: Endpoint, _ record: CallRecord, _ token: plugin_token) {
        if kind == PLUGIN_KIND_NONE {
            settle(endpoint, record, token)
        } else {
            refuseResult(kind, endpoint, record, token)
        }
    }

    /// Makes sure that a synchronous call has been answered when it has returned, by the action itself.
    @inline(__always)
    private func settle(_ endpoint: Endpoint, _ record: CallRecord, _ token: plugin_token) {
        if record.phase(of: token) != .over { failUnanswered(endpoint, record, token) }
    }

    @inline(never)
    private func failUnanswered(_ endpoint: Endpoint, _ record: CallRecord, _ token: plugin_token) {
        fail(
            record, token,
            PluginError(
                .noReply, "\(endpoint.title) returned without a reply. It must reply before.",
                source: endpoint.generation.name))
        waitForOther(record, token)
    }

    /// What an action has written as its result is none, or comes too late.
    @inline(never)
    private func refuseResult(_ kind: UInt32, _ endpoint: Endpoint, _ record: CallRecord, _ token: plugin_token) {
        let failure =
            kind <= PLUGIN_KIND_DOUBLE
            ? .deadlineExceeded(endpoint)  // Or it was answered before: then nobody is told this.
            : PluginError(
                .invalidResult,
                "\(endpoint.title) wrote a value of the kind \(kind) as its result, which may be null, a bool, an int or a "
                    + "double. It must reply to the host with any other.",
                source: endpoint.generation.name)
        if !fail(record, token, failure) {
            reportStaleReply(token, endpoint.generation)
            waitForOther(record, token)
        }
    }

    /// Another thread may be about to answer: it uses the record until it has.
    private func waitForOther(_ record: CallRecord, _ token: plugin_token) {
        while record.phase(of: token) == .replying { sched_yield() }
    }

    /// Answers with an error of the host's in place of the action. False where somebody has answered, or is about to.
    @discardableResult
    func fail(_ record: CallRecord, _ token: plugin_token, _ failure: PluginError) -> Bool {
        guard let phase = record.beginReply(token) else { return false }
        if phase == .open { failure.lend { record.complete(token, nil, $0) } }
        finishReply(record, token)
        return true
    }

    // MARK: In the pool

    /// The same way for an asynchronous action: nil, with nothing done, for any other.
    func beginStraight(
        _ found: Unmanaged<Endpoint>, _ entries: UnsafeBufferPointer<plugin_entry>, parent: plugin_token,
        from caller: Generation, to receiver: Receiver, _ lane: Lane, _ record: CallRecord
    ) -> plugin_token? {
        found._withUnsafeGuaranteedRef { endpoint in
            guard endpoint.way == .straightAsync, isFree(endpoint, record) else { return nil }
            return withUnsafeTemporaryAllocation(of: plugin_value.self, capacity: Endpoint.straightParameters) {
                arguments in
                guard endpoint.take(entries, as: arguments) else { return nil }
                let call = Call(
                    parent: parent, timeout: 0, isRemote: false, mode: .any, receiver: receiver,
                    caller: .passUnretained(caller))
                return try? beginPooled(
                    endpoint, UnsafeBufferPointer(start: arguments.baseAddress, count: entries.count), call, lane,
                    record, instance: nil)
            }
        }
    }

    /// Moves the call to a record of the pool, where it can outlive this function, and starts it, now or when the gate
    /// lets it in.
    @inline(__always)
    private func beginPooled(
        _ endpoint: Endpoint, _ arguments: UnsafeBufferPointer<plugin_value>, _ call: Call, _ lane: Lane,
        _ mirror: CallRecord, instance: UnsafeMutableRawPointer?
    ) throws(PluginError) -> plugin_token {
        guard let record = RecordPool.take() else {
            throw PluginError(.recursionLimit, "More than eight million asynchronous calls are in flight.")
        }
        let timeout = call.timeout > 0 ? call.timeout : endpoint.isAsync ? settings.asyncTimeout : 0
        let deadline = deadline(in: timeout, from: mirror.since)
        record.occupy(
            .passUnretained(endpoint), parent: call.parent, depth: mirror.depth, caller: call.caller,
            since: mirror.since)
        record.object = mirror.object
        record.hold()
        record.pointer.pointee.started = lane.count(endpoint) ? monotonicNow() : 0
        let token = record.open(call.receiver.completion, call.receiver.data, deadline: deadline)
        guard let gate = endpoint.gate, !gate.enterIfFree(record) else {
            startPooled(endpoint, arguments, call, lane, mirror, record, token, deadline, instance)
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

    /// A call that waits at its gate. Its members are only read, by the one thread that starts it.
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
        guard record.phase(of: token) == .open, let lane = Lane.current, let mirror = lane.next else {
            // Nobody waits any more (or this thread is too deep, which a queue's is not): it never starts.
            fail(record, token, .recursionLimit)
            release(record, endpoint, leavesGate: true)
            return
        }
        mirror.occupy(.passUnretained(endpoint), parent: 0, depth: record.depth, caller: pending.call.caller)
        do throws(PluginError) {
            try pending.arguments.withEntries { entries, count in
                let values = (0..<count).map { entries[$0].value }
                values.withUnsafeBufferPointer {
                    startPooled(
                        endpoint, $0, pending.call, lane, mirror, record, token, pending.deadline, pending.instance)
                }
            }
        } catch {
            mirror.vacate()
            fail(record, token, error)
            release(record, endpoint, leavesGate: true)
        }
    }

    private func startPooled(
        _ endpoint: Endpoint, _ arguments: UnsafeBufferPointer<plugin_value>, _ call: Call, _ lane: Lane,
        _ mirror: CallRecord, _ record: CallRecord, _ token: plugin_token, _ deadline: Int64,
        _ instance: UnsafeMutableRawPointer?
    ) {
        mirror.pointer.pointee.stands_for = token
        lane.push()
        do throws(PluginError) {
            try run(endpoint, arguments, call, record, token, deadline, instance)
        } catch {
            fail(record, token, error)
        }
        lane.pop()
        mirror.vacate()
        if !endpoint.isAsync {
            settle(endpoint, record, token)
        } else if deadline != 0, record.phase(of: token) == .open {
            Deadlines.note(deadline)
        }
        release(record, endpoint, leavesGate: true)
    }

    /// Lets go of a record of the pool; the last one cleans up behind the call.
    func release(_ record: CallRecord, _ endpoint: Endpoint, leavesGate: Bool) {
        if !leavesGate { record.pointer.pointee.flags = CallRecord.isOutsideGate }
        guard record.letGo() else { return }
        if let own = record.pointer.pointee.instance { endpoint.instances?.destroy(own) }
        if record.pointer.pointee.flags & CallRecord.isOutsideGate == 0 { endpoint.gate?.leave() }
        record.pointer.pointee.flags = 0
        let object = record.object
        RecordPool.giveBack(record)
        if object != 0 { _ = ObjectTable.release(object) }
    }

    // MARK: Replies

    /// Ends a call for its caller, while the action goes on; only for calls in the pool. Nothing happens, at once, where
    /// the caller is being told another outcome.
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
