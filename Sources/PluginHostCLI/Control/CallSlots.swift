internal import PluginABI
internal import PluginHost
internal import Synchronization

/// Limits the number of calls that the control socket runs at a time, and shares them fairly among its clients.
///
/// A client's first call always runs, in a slot of the client's own. All other calls share ``Limits/shared`` slots, of
/// which one client gets at most half. If no slot is free, a call waits for ``Limits/patience`` (the clients take
/// turns), and then fails with `overloaded`. It fails immediately if too many calls are waiting.
///
/// A call whose client has disconnected continues, because code is never interrupted, and uses a shared slot from then
/// on. While ``Limits/orphans`` such calls run, new calls are refused, because the code of their modules apparently
/// never returns.
final class CallSlots: Sendable {
    struct Limits: Sendable {
        /// The number of calls that run at a time besides the first one of each client.
        var shared = 64
        /// The maximum number of running calls whose clients have gone.
        var orphans = 256
        /// The maximum number of calls that wait for a slot.
        var waiting = 256
        /// How long a call waits for a slot.
        var patience = Duration.milliseconds(100)

        /// The number of calls that one client can run at a time: its own slot, and half of the shared ones.
        var perClient: Int { 1 + max(1, shared / 2) }
    }

    private struct Waiter {
        let number: Int
        let continuation: UnsafeContinuation<Bool, Never>
    }

    private struct Client {
        var running = 0
        var hasGone = false
        var waiters: [Waiter] = []
    }

    private struct State {
        let limits: Limits
        var clients: [Int: Client] = [:]
        /// The clients with waiting calls, the next one first.
        var turns: [Int] = []
        var sharedRunning = 0
        /// The number of running calls whose clients have gone. They are also part of `sharedRunning`.
        var orphans = 0
        var waiting = 0
        var lastWaiter = 0

        init(_ limits: Limits) { self.limits = limits }

        /// The client with a number. It is removed when it has neither running nor waiting calls.
        subscript(_ number: Int) -> Client {
            get { clients[number] ?? Client() }
            set { clients[number] = newValue.running == 0 && newValue.waiters.isEmpty ? nil : newValue }
        }

        func hasSlot(_ client: Int) -> Bool {
            guard orphans < limits.orphans else { return false }
            let running = self[client].running
            return running == 0 || running < limits.perClient && sharedRunning < limits.shared
        }

        mutating func begin(_ client: Int) {
            self[client].running += 1
            if self[client].running > 1 { sharedRunning += 1 }
        }

        mutating func end(_ client: Int) {
            let hadGone = self[client].hasGone
            self[client].running -= 1
            if hadGone { orphans -= 1 }
            if hadGone || self[client].running > 0 { sharedRunning -= 1 }
        }

        /// Marks a client as gone, and returns its waiting calls.
        mutating func abandon(_ client: Int) -> [Waiter] {
            let waiters = self[client].waiters
            waiting -= waiters.count
            turns.removeAll { $0 == client }
            self[client].waiters = []
            let running = self[client].running
            guard running > 0 else { return waiters }
            self[client].hasGone = true
            orphans += running
            sharedRunning += 1
            return waiters
        }

        mutating func append(_ waiter: Waiter, of client: Int) {
            waiting += 1
            if self[client].waiters.isEmpty { turns.append(client) }
            self[client].waiters.append(waiter)
        }

        mutating func removeWaiter(of client: Int, at index: Int) -> Waiter {
            waiting -= 1
            defer { if self[client].waiters.isEmpty { turns.removeAll { $0 == client } } }
            return self[client].waiters.remove(at: index)
        }

        /// Admits waiting calls while there are free slots. The clients take turns.
        mutating func admitNext() -> [Waiter] {
            var admitted: [Waiter] = []
            while let client = turns.first(where: hasSlot) {
                admitted.append(removeWaiter(of: client, at: 0))
                begin(client)
                // A client with more waiting calls moves behind the others.
                if let index = turns.firstIndex(of: client) { turns.append(turns.remove(at: index)) }
            }
            return admitted
        }
    }

    private let limits: Limits
    private let state: Mutex<State>
    private let timer = SerialThread("host.patience")

    init(_ limits: Limits) {
        self.limits = limits
        state = Mutex(State(limits))
    }

    /// Acquires a slot, now or after a short wait. When this function has returned without an error, the caller must
    /// later call ``leave(_:)``.
    ///
    /// - Throws: `overloaded`.
    func enter(_ client: Int) async throws(PluginError) {
        if await withUnsafeContinuation({ ask(client, $0) }) { return }
        let orphans = state.withLock { $0.orphans }
        guard orphans < limits.orphans else {
            throw PluginError(
                .overloaded,
                "\(orphans) calls whose clients have gone are still running, and no new call starts until some of them "
                    + "end. 'list --all' shows which modules they are in.")
        }
        throw PluginError(
            .overloaded,
            "\(limits.shared) calls are already running besides the first one of each client, which is the limit of the "
                + "control socket ('--max-calls'). One client can run at most \(limits.perClient). Try again when some "
                + "have ended.")
    }

    func leave(_ client: Int) {
        let admitted = state.withLock { state in
            state.end(client)
            return state.admitNext()
        }
        for waiter in admitted { waiter.continuation.resume(returning: true) }
    }

    /// Records that a client has gone. From now on, its running calls count only as shared ones; its waiting calls are
    /// refused.
    func clientHasGone(_ client: Int) {
        for waiter in state.withLock({ $0.abandon(client) }) { waiter.continuation.resume(returning: false) }
    }

    /// Resumes the continuation with whether a call may begin, or makes the call wait.
    private func ask(_ client: Int, _ continuation: UnsafeContinuation<Bool, Never>) {
        let (answer, number): (Bool?, Int) = state.withLock { state in
            if state[client].waiters.isEmpty, state.hasSlot(client) {
                state.begin(client)
                return (true, 0)
            }
            guard state.waiting < limits.waiting else { return (false, 0) }
            state.lastWaiter += 1
            state.append(Waiter(number: state.lastWaiter, continuation: continuation), of: client)
            return (nil, state.lastWaiter)
        }
        if let answer { return continuation.resume(returning: answer) }
        timer.async(after: limits.patience) { self.giveUp(number, of: client) }
    }

    private func giveUp(_ number: Int, of client: Int) {
        let waiter: Waiter? = state.withLock { state in
            let index = state[client].waiters.firstIndex { $0.number == number }
            return index.map { state.removeWaiter(of: client, at: $0) }
        }
        waiter?.continuation.resume(returning: false)
    }
}
