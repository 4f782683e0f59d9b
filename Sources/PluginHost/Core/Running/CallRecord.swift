import CPluginABI
import CPluginHost
import Glibc
import Synchronization

/// The record of one running call: the receiver of its reply, and what the status and the crash report show.
///
/// A thin wrapper around `plugin_host_record`. The memory is never freed, so a stale token leads to a record with
/// another sequence number rather than to undefined memory.
struct CallRecord {
    let pointer: UnsafeMutablePointer<plugin_host_record>

    /// The state of a call, which determines what a reply may still do.
    enum Phase: UInt64 {
        /// The call is over, or has not begun.
        case over = 0
        /// The caller waits for the reply.
        case open = 1
        /// A thread is replying.
        case replying = 2
        /// The caller no longer waits (it cancelled the call, or the deadline passed); the action is still running.
        case abandoned = 3
    }

    /// Finds the record that a token refers to; `nil` for a number that was never a token. The record may already serve
    /// another call.
    init?(token: plugin_token) {
        let index = UInt32(truncatingIfNeeded: token >> 41)
        guard token != 0, let pointer = plugin_host_record_at(index) else { return nil }
        self.pointer = pointer
    }

    init(_ pointer: UnsafeMutablePointer<plugin_host_record>) { self.pointer = pointer }

    // The atomic members. Safe: Atomic<T> has the layout of T, and these members are accessed only through it.
    private var state: UnsafeMutablePointer<Atomic<UInt64>> { atomic(\.state) }
    private var endpointWord: UnsafeMutablePointer<Atomic<UInt64>> { atomic(\.endpoint) }
    private var lastEndpointWord: UnsafeMutablePointer<Atomic<UInt64>> { atomic(\.last_endpoint) }
    private var lock: UnsafeMutablePointer<Atomic<UInt32>> { atomic(\.lock) }
    private var replierWord: UnsafeMutablePointer<Atomic<UInt64>> { atomic(\.replier) }
    private var referencesWord: UnsafeMutablePointer<Atomic<UInt32>> { atomic(\.references) }
    private var deadlineWord: UnsafeMutablePointer<Atomic<Int64>> { atomic(\.deadline) }
    private var parentWord: UnsafeMutablePointer<Atomic<UInt64>> { atomic(\.parent) }
    private var objectWord: UnsafeMutablePointer<Atomic<UInt64>> { atomic(\.object) }
    private var callerWord: UnsafeMutablePointer<Atomic<UInt64>> { atomic(\.caller) }
    private var sinceWord: UnsafeMutablePointer<Atomic<Int64>> { atomic(\.since) }
    private var depthWord: UnsafeMutablePointer<Atomic<UInt64>> { atomic(\.depth) }

    @inline(__always)
    private func atomic<T: AtomicRepresentable>(
        _ member: KeyPath<plugin_host_record, T>
    ) -> UnsafeMutablePointer<Atomic<T>> {
        let offset = MemoryLayout<plugin_host_record>.offset(of: member)!
        return (UnsafeMutableRawPointer(pointer) + offset).assumingMemoryBound(to: Atomic<T>.self)
    }

    /// The endpoint that runs; `nil` if the record is free.
    var endpoint: Endpoint? { unretainedEndpoint?.takeUnretainedValue() }

    /// The endpoint that runs, without reference counting: endpoints are never freed.
    @inline(__always)
    var unretainedEndpoint: Unmanaged<Endpoint>? {
        UnsafeRawPointer(bitPattern: UInt(endpointWord.pointee.load(ordering: .acquiring))).map(Unmanaged.fromOpaque)
    }

    /// The deadline in nanoseconds of CLOCK_MONOTONIC; 0 if there is none.
    var deadline: Int64 { deadlineWord.pointee.load(ordering: .relaxed) }

    /// The token of the call for which this one is made, or 0.
    var parent: plugin_token { parentWord.pointee.load(ordering: .acquiring) }

    /// The object that the call retains, or 0. As with `parent`, code that does not own the record must check the phase
    /// of the call afterwards, because the record may already serve another one.
    var object: plugin_object {
        @inline(__always) get { objectWord.pointee.load(ordering: .acquiring) }
        nonmutating set { objectWord.pointee.store(newValue, ordering: .releasing) }
    }

    /// The generation whose code made the call; `nil` if the host itself made it.
    var caller: Generation? {
        UnsafeRawPointer(bitPattern: UInt(callerWord.pointee.load(ordering: .relaxed))).map {
            Unmanaged<Generation>.fromOpaque($0).takeUnretainedValue()  // Never freed.
        }
    }

    /// The time when the call began, in nanoseconds of CLOCK_MONOTONIC_COARSE, which advances with CLOCK_MONOTONIC and
    /// is up to a few milliseconds behind it.
    var since: Int64 { sinceWord.pointee.load(ordering: .relaxed) }

    /// The number of calls in the chain that led to this one, including this one, and the number of their call
    /// context. So a call inherits the context with the depth, and a call with a context exceeds every limit of
    /// the fast paths; see ``CallContexts``.
    var depth: UInt64 { depthWord.pointee.load(ordering: .acquiring) }

    /// Occupies the record for a call of an endpoint. From then on the call counts as running in the endpoint's
    /// generation.
    @inline(__always)
    func occupy(
        _ endpoint: Unmanaged<Endpoint>, parent: plugin_token, depth: UInt64, caller: Unmanaged<Generation>?,
        since: Int64 = plugin_host_coarse_now()
    ) {
        callerWord.pointee.store(caller.map { UInt64(UInt(bitPattern: $0.toOpaque())) } ?? 0, ordering: .relaxed)
        sinceWord.pointee.store(since, ordering: .relaxed)
        pointer.pointee.label = endpoint._withUnsafeGuaranteedRef { $0.label }
        parentWord.pointee.store(parent, ordering: .releasing)
        depthWord.pointee.store(depth, ordering: .releasing)
        pointer.pointee.instance = nil
        pointer.pointee.stands_for = 0
        object = 0
        let word = UInt64(UInt(bitPattern: endpoint.toOpaque()))
        lastEndpointWord.pointee.store(word, ordering: .relaxed)
        endpointWord.pointee.store(word, ordering: .releasing)
        plugin_host_fence_light()  // Later reads are from a time at which the call is visible.
    }

    /// Returns the endpoint of a call, which may be over; `nil` if the record has served other calls since.
    func lastEndpoint(of token: plugin_token) -> Endpoint? {
        let word = lastEndpointWord.pointee.load(ordering: .relaxed)
        guard state.pointee.load(ordering: .acquiring) >> 2 == token & Self.sequenceMask else { return nil }
        return UnsafeRawPointer(bitPattern: UInt(word)).map { Unmanaged.fromOpaque($0).takeUnretainedValue() }
    }

    /// Frees the record.
    @inline(__always)
    func vacate() {
        pointer.pointee.label = nil
        endpointWord.pointee.store(0, ordering: .releasing)
    }

    /// A flag of `plugin_host_record.flags`: the call never entered its gate.
    static let isOutsideGate: UInt16 = 1

    /// Starts waiting for a reply, and returns the token that the reply must name.
    ///
    /// - Parameter thread: The thread context that the record belongs to, for ``answer(_:_:)``; `nil` for a record of
    ///   the pool.
    @inline(__always)
    func open(
        _ completion: @escaping plugin_completion, _ data: UnsafeMutableRawPointer?, deadline: Int64,
        in thread: ThreadContext? = nil
    ) -> plugin_token {
        pointer.pointee.completion = unsafeBitCast(completion, to: type(of: pointer.pointee.completion))
        pointer.pointee.data = data
        deadlineWord.pointee.store(deadline, ordering: .relaxed)
        replierWord.pointee.store(thread?.id ?? 0, ordering: .relaxed)
        let sequence = (state.pointee.load(ordering: .relaxed) >> 2 &+ 1) & Self.sequenceMask
        state.pointee.store(sequence << 2 | Phase.open.rawValue, ordering: .releasing)
        return UInt64(pointer.pointee.index) << 41 | sequence
    }

    private static let sequenceMask: UInt64 = (1 << 41) - 1

    /// The token of the call that occupies the record.
    var token: plugin_token {
        UInt64(pointer.pointee.index) << 41 | state.pointee.load(ordering: .acquiring) >> 2 & Self.sequenceMask
    }

    /// Returns the phase of the call that a token names; `over` if the record serves another call by now.
    @inline(__always)
    func phase(of token: plugin_token) -> Phase {
        let word = state.pointee.load(ordering: .acquiring)
        guard word >> 2 == token & Self.sequenceMask else { return .over }
        return Phase(rawValue: word & 3)!
    }

    /// Changes the phase of a call if it is in the expected one. The thread that succeeds owns the completion.
    @inline(__always)
    func move(_ token: plugin_token, from old: Phase, to new: Phase) -> Bool {
        let sequence = (token & Self.sequenceMask) << 2
        return state.pointee.compareExchange(
            expected: sequence | old.rawValue, desired: sequence | new.rawValue, ordering: .acquiringAndReleasing
        ).exchanged
    }

    /// Ends a call that this thread owns, or, with `abandoned`, leaves it to the action because only the caller has
    /// stopped waiting.
    @inline(__always)
    func close(_ token: plugin_token, _ phase: Phase = .over) {
        state.pointee.store((token & Self.sequenceMask) << 2 | phase.rawValue, ordering: .releasing)
    }

    /// Completes the call of a token. Only for the thread that has moved it out of `open`.
    @inline(__always)
    func complete(
        _ token: plugin_token, _ value: UnsafePointer<plugin_value>?, _ error: UnsafePointer<plugin_error>?
    ) {
        let thread = ThreadContext.current
        if error != nil, let thread, let endpoint { thread.countError(endpoint) }
        thread?.beginReply(self, token)
        pointer.pointee.completion?(pointer.pointee.data, value, error)
        thread?.endReply(self)
    }

    /// Replies with a result to a call that runs on this thread and was opened in its thread context. Returns false and
    /// does nothing if the call already has a reply.
    ///
    /// The reply need not be recorded in the thread context: ``open(_:_:deadline:in:)`` has stored the thread context
    /// as the replier, and a call that runs on this thread is already one of its ``ThreadContext/blockedCalls``.
    @inline(__always)
    func answer(_ token: plugin_token, _ result: UnsafePointer<plugin_value>) -> Bool {
        guard move(token, from: .open, to: .replying) else { return false }
        pointer.pointee.completion?(pointer.pointee.data, result, nil)
        close(token)
        return true
    }

    /// Acquires the right to reply, in competition with other threads that may reply, and returns the previous phase of
    /// the call; `nil` if the call is over or this thread is already replying to it.
    @inline(__always)
    func beginReply(_ token: plugin_token) -> Phase? {
        beginFirstReply(token) ? .open : beginContendedReply(token)
    }

    /// Acquires the right to reply if no thread has yet. Does not wait for a thread that is replying, because that
    /// thread may need a lock that the caller has, as Swift's runtime does while a task is cancelled.
    @inline(__always)
    func beginFirstReply(_ token: plugin_token) -> Bool {
        guard move(token, from: .open, to: .replying) else { return false }
        replierWord.pointee.store(ThreadContext.currentID, ordering: .relaxed)
        return true
    }

    private func beginContendedReply(_ token: plugin_token) -> Phase? {
        while true {
            let phase = phase(of: token)
            switch phase {
            case .open, .abandoned:
                if move(token, from: phase, to: .replying) {
                    replierWord.pointee.store(ThreadContext.currentID, ordering: .relaxed)
                    return phase
                }
            case .replying:
                if replierWord.pointee.load(ordering: .relaxed) == ThreadContext.currentID { return nil }
                sched_yield()
            case .over: return nil
            }
        }
    }

    /// Returns whether the call belongs to a generation: only that generation's code may reply to it.
    @inline(__always)
    func belongs(to generation: Generation) -> Bool {
        unretainedEndpoint?._withUnsafeGuaranteedRef { $0.generation === generation } ?? false
    }

    /// Returns whether the code of this generation made the call.
    func isMade(by caller: Unmanaged<Generation>) -> Bool {
        callerWord.pointee.load(ordering: .relaxed) == UInt64(UInt(bitPattern: caller.toOpaque()))
    }

    /// Whether another thread is replying, in which case waiting for it makes sense.
    var isReplyingElsewhere: Bool { replierWord.pointee.load(ordering: .relaxed) != ThreadContext.currentID }

    /// Calls `body` with exclusive access to the cancel handler.
    func withCancelHandler<Result>(
        _ body: (inout (@convention(c) (UnsafeMutableRawPointer?, Int32) -> Void)?, inout UnsafeMutableRawPointer?)
            -> Result
    ) -> Result {
        while !lock.pointee.weakCompareExchange(expected: 0, desired: 1, ordering: .acquiring).exchanged {}
        defer { lock.pointee.store(0, ordering: .releasing) }
        // Copied, because passing the members directly counts as an access to the whole record.
        var (handler, data) = (pointer.pointee.cancel_handler, pointer.pointee.cancel_data)
        defer { (pointer.pointee.cancel_handler, pointer.pointee.cancel_data) = (handler, data) }
        return body(&handler, &data)
    }

    /// Removes the cancel handler, and returns a closure that calls it.
    func takeCancelHandler() -> (_ isCancelled: Bool) -> Void {
        let (handler, data) = withCancelHandler { handler, data in
            defer { (handler, data) = (nil, nil) }
            return (handler, data)
        }
        return { handler?(data, $0 ? 1 : 0) }
    }

    /// Sets the two users of a record of the pool: the running action, and the reply.
    func retain() { referencesWord.pointee.store(2, ordering: .releasing) }

    /// Removes one user. Returns true if it was the last one. The last of the two users that ``retain()`` sets need not
    /// subtract, because it finds that no other user is left.
    func release() -> Bool {
        guard referencesWord.pointee.load(ordering: .acquiring) == 1 else {
            return referencesWord.pointee.subtract(1, ordering: .acquiringAndReleasing).newValue == 0
        }
        referencesWord.pointee.store(0, ordering: .relaxed)
        return true
    }
}
