import CPluginABI
import CPluginHost
import Glibc
import Synchronization

/// The record of one running call: where its reply goes, and what the status and the crash report show.
///
/// A thin wrapper of `plugin_host_record`. The memory is never freed, so that a token that is over finds a record with
/// another sequence number instead of undefined memory.
struct CallRecord {
    let pointer: UnsafeMutablePointer<plugin_host_record>

    /// What a reply may still do.
    enum Phase: UInt64 {
        /// The call is over, or has not begun.
        case over = 0
        /// The reply is awaited.
        case open = 1
        /// Somebody is replying.
        case replying = 2
        /// The caller has gone (cancelled, or past the deadline); the action still runs.
        case abandoned = 3
    }

    /// The record that a token names; nil for a number that was never a token. It may serve another call by now.
    init?(token: plugin_token) {
        let index = UInt32(truncatingIfNeeded: token >> 41)
        guard token != 0, let pointer = plugin_host_record_at(index) else { return nil }
        self.pointer = pointer
    }

    init(_ pointer: UnsafeMutablePointer<plugin_host_record>) { self.pointer = pointer }

    // The atomic members. Sound: Atomic<T> has the layout of T, and these are accessed in no other way.
    private var state: UnsafeMutablePointer<Atomic<UInt64>> { atomic(\.state) }
    private var endpointWord: UnsafeMutablePointer<Atomic<UInt64>> { atomic(\.endpoint) }
    private var lock: UnsafeMutablePointer<Atomic<UInt32>> { atomic(\.lock) }
    private var replierWord: UnsafeMutablePointer<Atomic<UInt64>> { atomic(\.replier) }
    private var referencesWord: UnsafeMutablePointer<Atomic<UInt32>> { atomic(\.references) }
    private var deadlineWord: UnsafeMutablePointer<Atomic<Int64>> { atomic(\.deadline) }
    private var parentWord: UnsafeMutablePointer<Atomic<UInt64>> { atomic(\.parent) }
    private var objectWord: UnsafeMutablePointer<Atomic<UInt64>> { atomic(\.object) }
    private var callerWord: UnsafeMutablePointer<Atomic<UInt64>> { atomic(\.caller) }
    private var sinceWord: UnsafeMutablePointer<Atomic<Int64>> { atomic(\.since) }
    private var depthWord: UnsafeMutablePointer<Atomic<UInt32>> { atomic(\.depth) }

    @inline(__always)
    private func atomic<T: AtomicRepresentable>(
        _ member: KeyPath<plugin_host_record, T>
    ) -> UnsafeMutablePointer<Atomic<T>> {
        let offset = MemoryLayout<plugin_host_record>.offset(of: member)!
        return (UnsafeMutableRawPointer(pointer) + offset).assumingMemoryBound(to: Atomic<T>.self)
    }

    /// Whether a call has the record now.
    var isOccupied: Bool { endpointWord.pointee.load(ordering: .acquiring) != 0 }

    /// What runs; nil when the record is free.
    var endpoint: Endpoint? { unretainedEndpoint?.takeUnretainedValue() }

    /// The same, not counted: endpoints are never freed.
    @inline(__always)
    var unretainedEndpoint: Unmanaged<Endpoint>? {
        UnsafeRawPointer(bitPattern: UInt(endpointWord.pointee.load(ordering: .acquiring))).map(Unmanaged.fromOpaque)
    }

    /// CLOCK_MONOTONIC nanoseconds; 0 for none.
    var deadline: Int64 { deadlineWord.pointee.load(ordering: .relaxed) }

    /// The token of the call that this one is made for, or 0.
    var parent: plugin_token { parentWord.pointee.load(ordering: .acquiring) }

    /// The object that the call holds, or 0. As with `parent`, who does not hold the record looks at the phase of the
    /// call after that: the record may serve another one by now.
    var object: plugin_object {
        @inline(__always) get { objectWord.pointee.load(ordering: .acquiring) }
        nonmutating set { objectWord.pointee.store(newValue, ordering: .releasing) }
    }

    /// Whose code made the call; nil where the host itself has.
    var caller: Generation? {
        UnsafeRawPointer(bitPattern: UInt(callerWord.pointee.load(ordering: .relaxed))).map {
            Unmanaged<Generation>.fromOpaque($0).takeUnretainedValue()  // Never freed.
        }
    }

    /// When it began, in nanoseconds of CLOCK_MONOTONIC_COARSE, which goes with CLOCK_MONOTONIC and is some
    /// milliseconds behind it.
    var since: Int64 { sinceWord.pointee.load(ordering: .relaxed) }

    /// How many calls led here.
    var depth: UInt32 { depthWord.pointee.load(ordering: .acquiring) }

    /// Takes the record for a call of an endpoint: from now on it counts as running in its generation.
    @inline(__always)
    func occupy(
        _ endpoint: Unmanaged<Endpoint>, parent: plugin_token, depth: UInt32, caller: Unmanaged<Generation>?,
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
        endpointWord.pointee.store(UInt64(UInt(bitPattern: endpoint.toOpaque())), ordering: .releasing)
        plugin_host_fence_light()  // What is read from here on is as of a time at which the call can be seen.
    }

    /// Gives the record back.
    @inline(__always)
    func vacate() {
        pointer.pointee.label = nil
        endpointWord.pointee.store(0, ordering: .releasing)
    }

    /// A flag of `plugin_host_record.flags`: the call never came through its gate.
    static let isOutsideGate: UInt32 = 1

    /// Begins to await a reply, and returns the token that it must name.
    ///
    /// - Parameter thread context: The one whose record it is, for ``answer(_:_:)``; nil in the pool.
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

    /// The token of the call that holds the record now.
    var token: plugin_token {
        UInt64(pointer.pointee.index) << 41 | state.pointee.load(ordering: .acquiring) >> 2 & Self.sequenceMask
    }

    /// The phase of the call that a token names; over when the record serves another call by now.
    @inline(__always)
    func phase(of token: plugin_token) -> Phase {
        let word = state.pointee.load(ordering: .acquiring)
        guard word >> 2 == token & Self.sequenceMask else { return .over }
        return Phase(rawValue: word & 3)!
    }

    /// Moves a call on, if it is where it is expected. Who succeeds owns the completion.
    @inline(__always)
    func move(_ token: plugin_token, from old: Phase, to new: Phase) -> Bool {
        let sequence = (token & Self.sequenceMask) << 2
        return state.pointee.compareExchange(
            expected: sequence | old.rawValue, desired: sequence | new.rawValue, ordering: .acquiringAndReleasing
        ).exchanged
    }

    /// Ends a call that this thread owns; or leaves it to the action, when only the caller has gone.
    @inline(__always)
    func close(_ token: plugin_token, _ phase: Phase = .over) {
        state.pointee.store((token & Self.sequenceMask) << 2 | phase.rawValue, ordering: .releasing)
    }

    /// Completes the call of a token; only for who has moved it out of `open`.
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

    /// Answers a call that runs on this thread, and was opened in its thread context, with a result. False, with nothing done, where
    /// somebody has answered.
    ///
    /// Nothing need be noted for that: ``open(_:_:deadline:in:)`` has noted that the thread context replies, and a call that runs on
    /// a thread context is among those that it blocks.
    @inline(__always)
    func answer(_ token: plugin_token, _ result: UnsafePointer<plugin_value>) -> Bool {
        guard move(token, from: .open, to: .replying) else { return false }
        pointer.pointee.completion?(pointer.pointee.data, result, nil)
        close(token)
        return true
    }

    /// Takes the right to reply from whoever else may reply, and returns the phase of the call until then. nil when the
    /// call is over, or this thread is replying to it already.
    @inline(__always)
    func beginReply(_ token: plugin_token) -> Phase? {
        beginFirstReply(token) ? .open : beginContendedReply(token)
    }

    /// Takes the right to reply where nobody has yet. It waits for nobody who is replying: that may last until a lock is
    /// free that the caller holds, as Swift's runtime does while a task is cancelled.
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

    /// Whether the call belongs to a generation: only its own code may answer it.
    @inline(__always)
    func belongs(to generation: Generation) -> Bool {
        unretainedEndpoint?._withUnsafeGuaranteedRef { $0.generation === generation } ?? false
    }

    /// Whether a generation has made the call.
    func isMade(by caller: Unmanaged<Generation>) -> Bool {
        callerWord.pointee.load(ordering: .relaxed) == UInt64(UInt(bitPattern: caller.toOpaque()))
    }

    /// Whether another thread is replying, so that waiting for it makes sense.
    var isReplyingElsewhere: Bool { replierWord.pointee.load(ordering: .relaxed) != ThreadContext.currentID }

    /// Works on the cancel handler, alone.
    func withCancelHandler<Result>(
        _ body: (inout (@convention(c) (UnsafeMutableRawPointer?, Int32) -> Void)?, inout UnsafeMutableRawPointer?)
            -> Result
    ) -> Result {
        while !lock.pointee.weakCompareExchange(expected: 0, desired: 1, ordering: .acquiring).exchanged {}
        defer { lock.pointee.store(0, ordering: .releasing) }
        // Not passed as they are: that counts as an access to the whole record.
        var (handler, data) = (pointer.pointee.cancel_handler, pointer.pointee.cancel_data)
        defer { (pointer.pointee.cancel_handler, pointer.pointee.cancel_data) = (handler, data) }
        return body(&handler, &data)
    }

    /// Takes the cancel handler out; calling the result tells it.
    func takeCancelHandler() -> (_ isCancelled: Bool) -> Void {
        let (handler, data) = withCancelHandler { handler, data in
            defer { (handler, data) = (nil, nil) }
            return (handler, data)
        }
        return { handler?(data, $0 ? 1 : 0) }
    }

    /// Sets what still needs a record of the pool: the action that runs, and the reply.
    func retain() { referencesWord.pointee.store(2, ordering: .releasing) }

    /// Returns true to the last one that lets go. Of the two that `hold` counts, the second finds that nobody else needs
    /// the record, and need not subtract.
    func release() -> Bool {
        guard referencesWord.pointee.load(ordering: .acquiring) == 1 else {
            return referencesWord.pointee.subtract(1, ordering: .acquiringAndReleasing).newValue == 0
        }
        referencesWord.pointee.store(0, ordering: .relaxed)
        return true
    }
}
