import CPluginABI
import Dispatch
import PluginABI
import Synchronization

/// Lets one call in at a time, and finds waits that would never end.
///
/// A call that wants in while another is inside waits: a synchronous one blocks its thread, an asynchronous one is kept
/// and started later. Before it waits, the wait-for graph is searched: the call inside may itself be waiting, through
/// the calls that it has made, for a gate that one of the waiter's own ancestors holds. Then waiting would close a
/// circle, and the call ends with `circularWait` instead.
final class SerialGate: Sendable {
    /// What is serial, for messages.
    let owner: String

    init(owner: String) { self.owner = owner }

    private struct Waiter {
        let gate: SerialGate
        let call: plugin_token
        /// The waiting call and those that led to it.
        let chain: [plugin_token]
        let enter: @Sendable () -> Void
    }

    /// Who holds which gate, and who waits: one graph for all gates of the process, since a circle can lead through any.
    private struct Graph {
        var holders: [ObjectIdentifier: plugin_token] = [:]
        var waiters: [Waiter] = []

        func closesCircle(_ chain: [plugin_token], waitingFor gate: SerialGate) -> Bool {
            var seen: Set<ObjectIdentifier> = []
            var unvisited = [gate]
            while let gate = unvisited.popLast() {
                guard seen.insert(ObjectIdentifier(gate)).inserted, let holder = holders[ObjectIdentifier(gate)] else {
                    continue
                }
                if chain.contains(holder) { return true }
                unvisited += waiters.filter { $0.chain.contains(holder) }.map(\.gate)
            }
            return false
        }
    }

    private static let graph = Mutex(Graph())

    private enum Admission { case entered, waiting, circle }

    private func ask(_ record: CallRecord, _ enter: @escaping @Sendable () -> Void) -> Admission {
        let call = record.token
        return Self.graph.withLock { graph in
            if graph.holders[ObjectIdentifier(self)] == nil {
                graph.holders[ObjectIdentifier(self)] = call
                return .entered
            }
            let chain = record.chain
            if graph.closesCircle(chain, waitingFor: self) { return .circle }
            graph.waiters.append(Waiter(gate: self, call: call, chain: chain, enter: enter))
            return .waiting
        }
    }

    private var circle: PluginError {
        PluginError(
            .circularWait,
            "\(owner) runs one call at a time, and the one that it runs waits for this one. Make the inner call "
                + "asynchronous and do not wait for it, or declare \(owner) concurrent.")
    }

    /// Enters, blocking this thread while another call is inside.
    ///
    /// - Throws: `circularWait`; `blockingInTask` if this is a Swift task and an asynchronous call is inside, which may
    ///   need this very thread to end.
    func enter(_ record: CallRecord) throws(PluginError) {
        let admitted = DispatchSemaphore(value: 0)
        switch ask(record, { admitted.signal() }) {
        case .entered: return
        case .circle: throw circle
        case .waiting:
            if isHeldByAsynchronousCall, withUnsafeCurrentTask(body: { $0 != nil }), leaveQueue(record.token) {
                throw PluginError(
                    .blockingInTask,
                    "\(owner) runs one call at a time, an asynchronous one is running, and a Swift task must not block "
                        + "for it. Use await call(…).")
            }
            admitted.wait()
        }
    }

    /// Enters if nobody is inside.
    func enterIfFree(_ record: CallRecord) -> Bool {
        let call = record.token
        return Self.graph.withLock { graph in
            guard graph.holders[ObjectIdentifier(self)] == nil else { return false }
            graph.holders[ObjectIdentifier(self)] = call
            return true
        }
    }

    /// Enters, now or later; calls `enter` on some thread in the second case, and returns false then.
    func enter(_ record: CallRecord, later enter: @escaping @Sendable () -> Void) throws(PluginError) -> Bool {
        switch ask(record, { DispatchQueue.global().async(execute: enter) }) {
        case .entered: return true
        case .waiting: return false
        case .circle: throw circle
        }
    }

    private var isHeldByAsynchronousCall: Bool {
        let holder = Self.graph.withLock { $0.holders[ObjectIdentifier(self)] }
        return holder.flatMap { CallRecord(token: $0) }?.endpoint?.isAsync ?? false
    }

    /// Takes a waiting call out; false when it has been let in.
    private func leaveQueue(_ call: plugin_token) -> Bool {
        Self.graph.withLock { graph in
            guard let place = graph.waiters.firstIndex(where: { $0.call == call && $0.gate === self }) else {
                return false
            }
            graph.waiters.remove(at: place)
            return true
        }
    }

    /// Leaves; the call that has waited longest enters.
    func leave() {
        let next: Waiter? = Self.graph.withLock { graph in
            guard let place = graph.waiters.firstIndex(where: { $0.gate === self }) else {
                graph.holders[ObjectIdentifier(self)] = nil
                return nil
            }
            let next = graph.waiters.remove(at: place)
            graph.holders[ObjectIdentifier(self)] = next.call
            return next
        }
        next?.enter()
    }
}
