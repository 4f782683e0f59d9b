import CPluginABI
import CPluginHost
import PluginABI
import Synchronization

/// The call contexts of the calls that the program has made with a context and that are not over.
///
/// Each has a number that is never reused. The program's call and all calls that it leads to carry the number in
/// their records, above the 16 bits of their depth: each call computes its depth from that of its parent anyway, so
/// inheriting the context costs nothing, and calls without one do not pay for it. The depth of a call with a context
/// exceeds `PLUGIN_DEPTH_MAX`, so no fast path takes it, and the slow path checks its level.
enum CallContexts {
    private struct State {
        var last: UInt64 = 0
        var contexts: [UInt64: CallContext] = [:]
    }
    private static let state = Mutex(State())
    private static let bits: UInt64 = 16

    /// Returns the number of calls in a chain: a depth without the number of the context.
    @inline(__always)
    static func level(_ depth: UInt64) -> UInt16 { UInt16(truncatingIfNeeded: depth) }

    /// Returns the context of a call; an empty one if the call has none, or is over, or the program's call is over.
    static func context(of call: plugin_token) -> CallContext {
        guard call != 0, let depth = CallRecord.read(call, { $0.depth }), depth >> bits != 0 else {
            return CallContext()
        }
        return state.withLock { $0.contexts[depth >> bits] } ?? CallContext()
    }

    /// The number of contexts.
    static var count: Int { state.withLock { $0.contexts.count } }

    /// Keeps a context, and returns the depth of a call that has it.
    ///
    /// - Parameter level: The number of calls that led to that call.
    fileprivate static func add(_ context: CallContext, level: UInt16) -> UInt64 {
        state.withLock { state in
            state.last += 1
            state.contexts[state.last] = context
            return state.last << bits | UInt64(level)
        }
    }

    fileprivate static func remove(_ depth: UInt64) {
        _ = state.withLock { $0.contexts.removeValue(forKey: depth >> bits) }
    }
}

extension HostCore {
    /// A record with a context, which is the parent of the calls that the program makes with it. The record does not
    /// represent a call, so it does not count as a level of nested calls.
    struct RootCall {
        fileprivate let record: CallRecord
        /// The parent of the calls with the context.
        let token: plugin_token
    }

    /// Begins calls with a context.
    ///
    /// - Parameter parent: The call on whose behalf they are made, or 0.
    /// - Throws: `invalidValue` if the context has an invalid caller; `recursionLimit` if too many calls are in flight.
    func begin(_ context: CallContext, parent: plugin_token) throws(PluginError) -> RootCall {
        try context.check()
        guard let record = RecordPool.take() else { throw .tooManyCalls }
        let level = parent == 0 ? 0 : CallRecord.read(parent) { CallContexts.level($0.depth) } ?? 0
        record.occupy(
            ownActions.rootCall, parent: parent, depth: CallContexts.add(context, level: level),
            caller: .passUnretained(program))
        return RootCall(record: record, token: record.open({ _, _, _ in }, nil, deadline: 0))
    }

    /// Ends calls with a context. Those that are still running may continue; they no longer have the context.
    func end(_ call: RootCall) {
        CallContexts.remove(call.record.depth)
        call.record.close(call.token)
        RecordPool.giveBack(call.record)
    }
}
