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
        var clients: [Int: Client] = [:]
        /// Clients with calls that wait; the one whose turn it is comes first.
        var turns: [Int] = []
        var sharedRunning = 0
        /// The calls whose clients have gone; each counts among `sharedRunning`, too.
        var orphans = 0
        var waiting = 0
        var lastWaiter = 0
    }

    private let limits: Limits
    private let state = Mutex(State())
    private let timer = SerialThread("host.patience")

    init(_ limits: Limits) { self.limits = limits }

    /// Enters, now or after a short wait. Whoever has entered leaves.
    ///
    /// - Throws: `overloaded`.
    func enter(_ client: Int) async throws(PluginError) {
        if enterAtOnce(client) { return }
        let hasEntered = await withUnsafeContinuation { wait(client, $0) }
        guard hasEntered else {
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
    }

    func leave(_ client: Int) {
        let admitted: [Waiter] = state.withLock { state in
            state.clients[client, default: Client()].running -= 1
            let present = state.clients[client, default: Client()]
            if present.hasGone { state.orphans -= 1 }
            if present.hasGone || present.running > 0 { state.sharedRunning -= 1 }
            forgetIfUnused(client, &state)
            return admitNext(&state)
        }
        for waiter in admitted { waiter.continuation.resume(returning: true) }
    }

    /// Notes that a client has gone. Its calls that run give up the client's own place for a shared one, and those that
    /// wait are refused.
    func clientHasGone(_ client: Int) {
        let refused: [Waiter] = state.withLock { state in
            guard let present = state.clients[client] else { return [] }
            state.clients[client]?.waiters = []
            state.waiting -= present.waiters.count
            state.turns.removeAll { $0 == client }
            if present.running > 0 {
                state.clients[client]?.hasGone = true
                state.orphans += present.running
                state.sharedRunning += 1
            }
            forgetIfUnused(client, &state)
            return present.waiters
        }
        for waiter in refused { waiter.continuation.resume(returning: false) }
    }

    private func enterAtOnce(_ client: Int) -> Bool {
        state.withLock { state in
            guard state.clients[client]?.waiters.isEmpty ?? true, hasPlace(client, state) else { return false }
            begin(client, &state)
            return true
        }
    }

    private func hasPlace(_ client: Int, _ state: borrowing State) -> Bool {
        let running = state.clients[client]?.running ?? 0
        guard state.orphans < limits.orphans else { return false }
        return running == 0 || running < limits.perClient && state.sharedRunning < limits.shared
    }

    private func begin(_ client: Int, _ state: inout State) {
        state.clients[client, default: Client()].running += 1
        if state.clients[client, default: Client()].running > 1 { state.sharedRunning += 1 }
    }

    private func wait(_ client: Int, _ continuation: UnsafeContinuation<Bool, Never>) {
        enum Decision {
            case entered
            case waits(Int)
            case refused
        }
        let decision: Decision = state.withLock { state in
            // A place may have become free since it was asked for.
            if state.clients[client]?.waiters.isEmpty ?? true, hasPlace(client, state) {
                begin(client, &state)
                return .entered
            }
            guard state.waiting < limits.waiting else { return .refused }
            state.waiting += 1
            state.lastWaiter += 1
            if state.clients[client, default: Client()].waiters.isEmpty { state.turns.append(client) }
            state.clients[client, default: Client()].waiters.append(
                Waiter(number: state.lastWaiter, continuation: continuation))
            return .waits(state.lastWaiter)
        }
        switch decision {
        case .entered: continuation.resume(returning: true)
        case .refused: continuation.resume(returning: false)
        case .waits(let number): timer.async(after: limits.patience) { self.giveUp(number, of: client) }
        }
    }

    private func giveUp(_ number: Int, of client: Int) {
        let waiter: Waiter? = state.withLock { state in
            guard let place = state.clients[client]?.waiters.firstIndex(where: { $0.number == number }) else {
                return nil
            }
            state.waiting -= 1
            defer {
                if state.clients[client, default: Client()].waiters.isEmpty { state.turns.removeAll { $0 == client } }
                forgetIfUnused(client, &state)
            }
            return state.clients[client, default: Client()].waiters.remove(at: place)
        }
        waiter?.continuation.resume(returning: false)
    }

    /// Lets in whom there is a place for, by turns.
    private func admitNext(_ state: inout State) -> [Waiter] {
        var admitted: [Waiter] = []
        while let place = state.turns.firstIndex(where: { hasPlace($0, state) }) {
            let client = state.turns.remove(at: place)
            admitted.append(state.clients[client, default: Client()].waiters.removeFirst())
            state.waiting -= 1
            begin(client, &state)
            if !state.clients[client, default: Client()].waiters.isEmpty { state.turns.append(client) }
        }
        return admitted
    }

    private func forgetIfUnused(_ client: Int, _ state: inout State) {
        guard let present = state.clients[client], present.running == 0, present.waiters.isEmpty else { return }
        state.clients[client] = nil
    }
}
