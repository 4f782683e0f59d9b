internal import PluginABI
internal import PluginHost
internal import Synchronization

/// The bounded number of calls that the control socket runs at a time, shared fairly among its clients.
///
/// A client's first call always runs: that place is the client's own. The others share ``Limits/shared`` places, of which
/// one client gets half at most. A call that finds none waits for ``Limits/patience``, by turns among the clients, and
/// ends with `overloaded` then; at once when too many wait.
///
/// A call whose client has gone goes on, since code is never interrupted, and takes one of the shared places from then on.
/// When ``Limits/orphans`` of them run, new calls are refused: the modules that they are in do not return.
final class CallSlots: Sendable {
    struct Limits: Sendable {
        /// How many calls run at a time besides the first one of each client.
        var shared = 64
        /// How many calls run at most whose clients have gone.
        var orphans = 256
        /// How many wait for a place.
        var waiting = 256
        /// How long each of them waits.
        var patience = Duration.milliseconds(100)

        /// How many calls one client runs at a time: its own place, and half of the shared ones.
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
        /// Clients with calls that wait; the one whose turn it is comes first.
        var turns: [Int] = []
        var sharedRunning = 0
        /// The calls whose clients have gone; each counts among `sharedRunning`, too.
        var orphans = 0
        var waiting = 0
        var lastWaiter = 0

        init(_ limits: Limits) { self.limits = limits }

        /// The client, which is forgotten when it has neither calls that run nor such that wait.
        subscript(_ number: Int) -> Client {
            get { clients[number] ?? Client() }
            set { clients[number] = newValue.running == 0 && newValue.waiters.isEmpty ? nil : newValue }
        }

        func hasPlace(_ client: Int) -> Bool {
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

        /// Returns those that wait for the client.
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

        mutating func removeWaiter(of client: Int, at place: Int) -> Waiter {
            waiting -= 1
            defer { if self[client].waiters.isEmpty { turns.removeAll { $0 == client } } }
            return self[client].waiters.remove(at: place)
        }

        /// Lets in whom there is a place for, by turns.
        mutating func admitNext() -> [Waiter] {
            var admitted: [Waiter] = []
            while let client = turns.first(where: hasPlace) {
                admitted.append(removeWaiter(of: client, at: 0))
                begin(client)
                // Whoever waits further on stands behind the others.
                if let place = turns.firstIndex(of: client) { turns.append(turns.remove(at: place)) }
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

    /// Enters, now or after a short wait. Whoever has entered leaves.
    ///
    /// - Throws: `overloaded`.
    func enter(_ client: Int) async throws(PluginError) {
        if await withUnsafeContinuation({ ask(client, $0) }) { return }
        let orphans = state.withLock { $0.orphans }
        guard orphans < limits.orphans else {
            throw PluginError(
                .overloaded,
                "\(orphans) calls still run whose clients have gone, and no more calls begin before some of them end: "
                    + "'list --all' shows which modules they are in.")
        }
        throw PluginError(
            .overloaded,
            "\(limits.shared) calls run already, which is the limit of the control socket ('--max-calls'), besides the "
                + "first one of each client; one client runs \(limits.perClient) at most. Try again when some "
                + "have ended.")
    }

    func leave(_ client: Int) {
        let admitted = state.withLock { state in
            state.end(client)
            return state.admitNext()
        }
        for waiter in admitted { waiter.continuation.resume(returning: true) }
    }

    /// Notes that a client has gone. Its calls that run give up the client's own place for a shared one, and those that
    /// wait are refused.
    func clientHasGone(_ client: Int) {
        for waiter in state.withLock({ $0.abandon(client) }) { waiter.continuation.resume(returning: false) }
    }

    /// Answers at once whether a call may begin, or lets it wait.
    private func ask(_ client: Int, _ continuation: UnsafeContinuation<Bool, Never>) {
        let (answer, number): (Bool?, Int) = state.withLock { state in
            if state[client].waiters.isEmpty, state.hasPlace(client) {
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
            let place = state[client].waiters.firstIndex { $0.number == number }
            return place.map { state.removeWaiter(of: client, at: $0) }
        }
        waiter?.continuation.resume(returning: false)
    }
}
