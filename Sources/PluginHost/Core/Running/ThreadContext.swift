import CPluginABI
import CPluginHost
import Synchronization

/// The state of one thread: the records of the synchronous calls that run on it, and whether it reads the table.
struct ThreadContext {
    let pointer: UnsafeMutablePointer<plugin_host_thread>

    /// The context of this thread; `nil` if 65,536 threads have one, or there is no memory for it.
    @inline(__always)
    static var current: ThreadContext? { plugin_host_thread_current().map(ThreadContext.init) }

    /// A number that identifies the thread context, never 0.
    var id: UInt64 { Self.id(of: pointer) }
    /// The number that identifies the context of this thread.
    static var currentID: UInt64 { id(of: plugin_host_thread_current()) }
    private static func id(of pointer: UnsafeMutablePointer<plugin_host_thread>?) -> UInt64 {
        UInt64(UInt(bitPattern: pointer)) | 1
    }

    /// The call that this thread works on, or 0.
    @inline(__always)
    var currentCall: plugin_token {
        guard let top else { return 0 }
        return top.pointer.pointee.stands_for != 0 ? top.pointer.pointee.stands_for : top.token
    }

    /// Every thread context that ever existed.
    static var all: some Sequence<ThreadContext> {
        sequence(first: plugin_host_threads()) { $0?.pointee.next }.prefix { $0 != nil }.lazy.map {
            ThreadContext(pointer: $0!)
        }
    }

    /// The registry's epoch while this thread reads the table, otherwise 0. Atomic<T> has the layout of T.
    var epoch: UnsafeMutablePointer<Atomic<UInt64>> {
        UnsafeMutableRawPointer(pointer).assumingMemoryBound(to: Atomic<UInt64>.self)
    }

    /// The table that this thread reads. It differs from the published one while the thread resolves a call of a module
    /// that is about to serve.
    var table: Registry.Kind {
        @inline(__always) get { Registry.Kind(rawValue: pointer.pointee.table).unsafelyUnwrapped }
        nonmutating set { pointer.pointee.table = newValue.rawValue }
    }

    @inline(__always)
    var seesPublished: Bool { pointer.pointee.table == Registry.Kind.published.rawValue }

    /// The number of synchronous calls that run on this thread.
    @inline(__always)
    var depth: Int { Int(pointer.pointee.depth) }

    /// The call that runs on this thread.
    @inline(__always)
    var top: CallRecord? { depth == 0 ? nil : CallRecord(pointer.pointee.records + (depth - 1)) }

    /// The record for one more call; `nil` if the limit is reached.
    @inline(__always)
    var next: CallRecord? {
        depth < PLUGIN_HOST_CHUNK ? CallRecord(pointer.pointee.records + depth) : nil
    }

    /// Every call that cannot continue while this thread is blocked: those that run on it, those whose outcome it is
    /// reporting to the caller, and those that wait for them.
    var blockedCalls: Set<plugin_token> {
        var calls: Set<plugin_token> = []
        for index in 0..<depth {
            let record = CallRecord(pointer.pointee.records + index)
            record.addChain(to: &calls)
            let call = record.pointer.pointee.stands_for
            if call != 0 { CallRecord(token: call)?.addChain(to: &calls) }
        }
        var replying = pointer.pointee.replying
        while replying != 0, let record = CallRecord(token: replying) {
            record.addChain(to: &calls)
            replying = record.pointer.pointee.replied_within
        }
        return calls
    }

    /// Records that this thread reports an outcome to a caller.
    @inline(__always)
    func beginReply(_ record: CallRecord, _ token: plugin_token) {
        record.pointer.pointee.replied_within = pointer.pointee.replying
        pointer.pointee.replying = token
    }

    @inline(__always)
    func endReply(_ record: CallRecord) { pointer.pointee.replying = record.pointer.pointee.replied_within }

    /// Counts a call of an action. Returns whether its duration should be measured, which is the case for the first
    /// call and for every sixty-fourth one on each thread.
    @inline(__always)
    @discardableResult
    func count(_ endpoint: Endpoint) -> Bool { count(endpoint.number) & 63 == 0 }

    /// Increments another tally, given by its number, and returns this thread's previous count.
    @inline(__always)
    @discardableResult
    func count(_ tally: UInt32) -> UInt64 { plugin_host_count_call(pointer, tally) }

    /// Returns the number of a new tally, which all threads count: unique in the process, from 0.
    static func nextTally() -> UInt32 { UInt32(clamping: tallies.add(1, ordering: .relaxed).oldValue) }
    private static let tallies = Atomic<UInt64>(0)

    /// Counts a call that ends with an error.
    func countError(_ endpoint: Endpoint) { plugin_host_count_error(pointer, endpoint.number) }

    @inline(__always)
    func push() { pointer.pointee.depth = pointer.pointee.depth + 1 }

    @inline(__always)
    func pop() { pointer.pointee.depth = pointer.pointee.depth - 1 }
}

/// The pool of records for asynchronous calls. Each thread caches one record, for calls that end on the thread where
/// they began.
enum RecordPool {
    private static let free = Mutex<[UInt32]>([])

    /// Takes a record for a call; `nil` if eight million calls are in flight.
    static func take() -> CallRecord? {
        if let thread = ThreadContext.current, case let spare = thread.pointer.pointee.spare_record, spare != 0 {
            thread.pointer.pointee.spare_record = 0
            return plugin_host_record_at(spare - 1).map(CallRecord.init)
        }
        let index: UInt32? = free.withLock { free in
            if free.isEmpty, let chunk = plugin_host_chunk_create() {
                free.append(
                    contentsOf: (chunk.pointee.index..<chunk.pointee.index + UInt32(PLUGIN_HOST_CHUNK)).reversed())
            }
            return free.popLast()
        }
        return index.flatMap { plugin_host_record_at($0) }.map(CallRecord.init)
    }

    static func giveBack(_ record: CallRecord) {
        record.vacate()
        record.pointer.pointee.started = 0
        if let thread = ThreadContext.current, thread.pointer.pointee.spare_record == 0 {
            thread.pointer.pointee.spare_record = record.pointer.pointee.index + 1
            return
        }
        free.withLock { $0.append(record.pointer.pointee.index) }
    }
}

/// Returns every record that a call of any host in the process occupies.
///
/// The records of threads are read before those of the pool, because calls move in that direction: a call is entered in
/// the pool before it leaves its thread's record, so it is found in at least one of them.
func runningCalls() -> [CallRecord] {
    var calls: [CallRecord] = []
    func addCalls(_ chunk: UnsafeMutablePointer<plugin_host_record>) {
        let end = chunk + Int(PLUGIN_HOST_CHUNK)
        var record = plugin_host_record_find(chunk, end)!
        while record != end {
            calls.append(CallRecord(record))
            record = plugin_host_record_find(record + 1, end)
        }
    }
    for thread in ThreadContext.all { addCalls(thread.pointer.pointee.records) }
    var number: UInt32 = 0
    while let chunk = plugin_host_record_at(number) {
        if chunk.pointee.is_pooled != 0 { addCalls(chunk) }
        number += UInt32(PLUGIN_HOST_CHUNK)
    }
    return calls
}
