import PluginABI
import Synchronization

/// The number of calls in flight, in all and for each module, with their limits.
final class Admission: Sendable {
    /// The number of calls of one module in flight.
    final class Share: Sendable {
        fileprivate let count = Atomic(0)
    }

    private let total: Int
    private let perModule: Int
    private let count = Atomic(0)
    private let shares = Mutex<[String: Share]>([:])

    init(total: Int, perModule: Int) { (self.total, self.perModule) = (max(1, total), max(1, perModule)) }

    /// The slot of a call, which is free again when nothing refers to this object.
    final class Slot: Sendable {
        private let admission: Admission
        private let share: Share?

        fileprivate init(_ admission: Admission, _ share: Share?) {
            (self.admission, self.share) = (admission, share)
        }

        deinit {
            share?.count.subtract(1, ordering: .relaxed)
            admission.count.subtract(1, ordering: .relaxed)
        }
    }

    /// Returns the number of calls of a module in flight, to count in.
    func share(of module: String) -> Share {
        shares.withLock { shares in
            if let share = shares[module] { return share }
            let share = Share()
            shares[module] = share
            return share
        }
    }

    /// Forgets the modules that no longer serve, unless calls of them are in flight or about to begin.
    ///
    /// - Parameter serves: Whether the module with this name serves.
    func forget(unless serves: (_ module: String) -> Bool) {
        shares.withLock { shares in
            for module in Array(shares.keys) where !serves(module) {
                // Calls refer to what they are counted in; only this function can refer to the rest.
                if isKnownUniquelyReferenced(&shares[module]) { shares[module] = nil }
            }
        }
    }

    /// The number of modules whose calls are counted.
    var moduleCount: Int { shares.withLock { $0.count } }

    /// Counts a call for as long as its slot is kept.
    ///
    /// - Parameter share: The calls of the module that the call leads to; `nil` if it leads to none.
    func enter(_ share: Share?) throws(Problem) -> Slot {
        // A call that its module refuses does not take a slot from other modules, not even for a moment.
        if let share, !share.count.increment(upTo: perModule) {
            throw Problem(
                .moduleBusy,
                "\(perModule) calls of this module are in flight, which is the limit. Try again later.", retryAfter: 1)
        }
        guard count.increment(upTo: total) else {
            share?.count.subtract(1, ordering: .relaxed)
            throw Problem(.overloaded, "\(total) calls are in flight, which is the limit. Try again later.")
        }
        return Slot(self, share)
    }

    /// The number of calls in flight.
    var inFlight: Int { count.load(ordering: .relaxed) }
}

extension Atomic<Int> {
    /// Adds 1, unless the limit is reached. Returns false in that case.
    borrowing func increment(upTo limit: Int) -> Bool {
        var value = load(ordering: .relaxed)
        while value < limit {
            let (exchanged, original) = weakCompareExchange(
                expected: value, desired: value + 1, ordering: .relaxed)
            if exchanged { return true }
            value = original
        }
        return false
    }
}
