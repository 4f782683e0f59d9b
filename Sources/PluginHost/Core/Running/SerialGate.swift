import CPluginABI
import Dispatch
import Glibc
import PluginABI
import Synchronization

/// A gate that admits one call at a time, and detects waits that would never end.
///
/// A call that must wait for another blocks its thread if it is synchronous; if it is asynchronous, it is stored and
/// started later. Before a call waits, the wait-for graph is searched: the running call may itself be waiting, through
/// the calls that it has made, for a gate whose running call cannot continue while the new call waits. The wait would
/// then close a cycle, so the new call ends with `circularWait` instead.
final class SerialGate: Sendable {
    /// The serial module or target, for messages.
    let owner: String
    /// Whether an asynchronous call stays inside until it replies; otherwise until its function returns.
    private let spansReplies: Bool

    init(owner: String, spansReplies: Bool = true) {
        (self.owner, self.spansReplies) = (owner, spansReplies)
    }

    private struct Waiter {
        let gate: SerialGate
        let call: plugin_token
        /// The calls that cannot continue before this one is admitted.
        let blocked: Set<plugin_token>
        let enter: @Sendable () -> Void

        /// Whether the caller still waits for the call.
        var isAwaited: Bool { CallRecord(token: call).map { $0.phase(of: call) == .open } ?? false }
    }

    /// The call inside each gate and the calls that wait: one graph for all gates of the process, because a cycle can
    /// lead through any of them.
    private struct Graph {
        var holders: [ObjectIdentifier: plugin_token] = [:]
        var waiters: [Waiter] = []

        func holder(of gate: SerialGate) -> plugin_token? { holders[ObjectIdentifier(gate)] }

        /// Returns the gate and the gates that the calls inside wait for, directly or indirectly.
        func gates(before gate: SerialGate) -> [SerialGate] {
            var gates: [SerialGate] = []
            var unvisited = [gate]
            while let gate = unvisited.popLast() {
                guard !gates.contains(where: { $0 === gate }) else { continue }
                gates.append(gate)
                guard let holder = holder(of: gate) else { continue }
                unvisited += waiters.filter { $0.blocked.contains(holder) && $0.isAwaited }.map(\.gate)
            }
            return gates
        }
    }

    private static let graph = Mutex(Graph())

    private enum Admission { case entered, waiting, cycle, needsTasks, undecided }

    /// Requests admission.
    ///
    /// - Parameters:
    ///   - isBlocking: Whether the thread waits; otherwise only the call does.
    ///   - enter: Called by the thread that admits the call later.
    private func ask(_ record: CallRecord, isBlocking: Bool, _ enter: @escaping @Sendable () -> Void) -> Admission {
        let call = record.token
        let isInTask = isBlocking && withUnsafeCurrentTask { $0 != nil }
        return Self.graph.withLock { graph in
            if graph.holder(of: self) == nil {
                graph.holders[ObjectIdentifier(self)] = call
                return .entered
            }
            var blocked = isBlocking ? ThreadContext.current?.blockedCalls ?? [] : []
            record.addChain(to: &blocked)
            let gates = graph.gates(before: self)
            if gates.contains(where: { graph.holder(of: $0).map(blocked.contains) ?? false }) { return .cycle }
            if isInTask {
                let calls = gates.filter(\.spansReplies).flatMap { gate in
                    graph.waiters.filter { $0.gate === gate }.map(\.call) + (graph.holder(of: gate).map { [$0] } ?? [])
                }
                let phases = calls.compactMap(Self.phaseIfAsynchronous)
                if phases.contains(where: { $0 == .open || $0 == .abandoned }) { return .needsTasks }
                if phases.contains(.replying) { return .undecided }
            }
            graph.waiters.append(Waiter(gate: self, call: call, blocked: blocked, enter: enter))
            return .waiting
        }
    }

    private static func phaseIfAsynchronous(_ call: plugin_token) -> CallRecord.Phase? {
        guard let record = CallRecord(token: call), record.endpoint?.isAsync == true else { return nil }
        return record.phase(of: call)
    }

    private func cycle(_ record: CallRecord) -> PluginError {
        let running = Self.graph.withLock { $0.holder(of: self) }.flatMap { CallRecord(token: $0)?.endpoint?.title }
        let name = running.map { ", \($0)," } ?? ""
        return PluginError(
            .circularWait,
            "\(record.endpoint?.title ?? "This action") is not called: \(owner) runs one call at a time, and the running "
                + "call\(name) waits for this one, directly or through other calls. Make the call after that one has "
                + "ended, or declare \(owner) concurrent.")
    }

    /// Enters, blocking the thread while another call is inside.
    ///
    /// - Throws: `circularWait`; `blockingInTask` if the caller runs in a Swift task and an asynchronous call, which
    ///   may need this very thread, must end first; `deadlineExceeded`.
    func enter(_ record: CallRecord) throws(PluginError) {
        let admitted = DispatchSemaphore(value: 0)
        while true {
            switch ask(record, isBlocking: true, { admitted.signal() }) {
            case .entered: return
            case .cycle: throw cycle(record)
            case .waiting: return try wait(for: admitted, record)
            case .needsTasks:
                throw PluginError(
                    .blockingInTask,
                    "\(owner) runs one call at a time, an asynchronous call is ahead of this one, and a Swift task must "
                        + "not block while it waits for that call. Use await call(…).")
            case .undecided: sched_yield()  // An asynchronous call is about to end.
            }
        }
    }

    private func wait(for admitted: DispatchSemaphore, _ record: CallRecord) throws(PluginError) {
        guard record.deadline != 0 else { return admitted.wait() }
        let remaining = max(0, record.deadline - monotonicNow())
        guard admitted.wait(timeout: .now() + .nanoseconds(Int(remaining))) == .timedOut, leaveQueue(record.token)
        else {
            return
        }
        throw PluginError(.deadlineExceeded, "\(owner) runs one call at a time, and was busy until the deadline.")
    }

    /// Enters if no call is inside.
    func enterIfFree(_ record: CallRecord) -> Bool {
        let call = record.token
        return Self.graph.withLock { graph in
            guard graph.holder(of: self) == nil else { return false }
            graph.holders[ObjectIdentifier(self)] = call
            return true
        }
    }

    /// Enters now and returns true, or returns false and calls `enter` on some thread once the call is admitted.
    func enter(_ record: CallRecord, later enter: @escaping @Sendable () -> Void) throws(PluginError) -> Bool {
        switch ask(record, isBlocking: false, { ThreadPool.shared.run(enter) }) {
        case .entered: return true
        case .cycle: throw cycle(record)
        case .waiting, .needsTasks, .undecided: return false
        }
    }

    /// Removes a waiting call. Returns false if it was already admitted.
    private func leaveQueue(_ call: plugin_token) -> Bool {
        Self.graph.withLock { graph in
            guard let index = graph.waiters.firstIndex(where: { $0.call == call && $0.gate === self }) else {
                return false
            }
            graph.waiters.remove(at: index)
            return true
        }
    }

    /// Leaves the gate; the call that has waited longest is admitted.
    func leave() {
        let next: Waiter? = Self.graph.withLock { graph in
            guard let index = graph.waiters.firstIndex(where: { $0.gate === self }) else {
                graph.holders[ObjectIdentifier(self)] = nil
                return nil
            }
            let next = graph.waiters.remove(at: index)
            graph.holders[ObjectIdentifier(self)] = next.call
            return next
        }
        next?.enter()
    }
}
