internal import Synchronization

/// Counts and limits the bytes of answers that one client, and all clients together, have not read yet.
final class ClientLoad: Sendable {
    /// The bytes of all clients of a server.
    final class Total: Sendable {
        fileprivate let bytes = Atomic(0)
    }

    /// A client that has read all its answers always has room for an answer of this many bytes, regardless of other
    /// clients.
    private static let small = 1 << 20

    private let bytes = Atomic(0)
    private let total: Total
    private let limit: Int
    private let limitInAll: Int

    init(_ total: Total, limit: Int, limitInAll: Int) {
        (self.total, self.limit, self.limitInAll) = (total, limit, limitInAll)
    }

    deinit { total.bytes.subtract(value, ordering: .relaxed) }

    var value: Int { bytes.load(ordering: .relaxed) }

    func add(_ count: Int) {
        bytes.add(count, ordering: .relaxed)
        total.bytes.add(count, ordering: .relaxed)
    }

    func remove(_ count: Int) { add(-count) }

    /// Checks that another request may begin.
    ///
    /// - Throws: `overloaded`.
    func admit() throws(RPCError) {
        if value >= limit { throw Self.unread("this client", limit) }
        if value > 0, total.bytes.load(ordering: .relaxed) >= limitInAll {
            throw Self.unread("all clients", limitInAll)
        }
    }

    /// Adds an answer that will have at least `count` bytes. There is always room for an answer that is not long
    /// (``LongTexts``): the limit on running requests also limits these answers.
    ///
    /// - Throws: `overloaded` if there is no room for the answer, in which case nothing is added.
    func reserve(_ count: Int) throws(RPCError) {
        let mine = bytes.add(count, ordering: .relaxed).newValue
        let all = total.bytes.add(count, ordering: .relaxed).newValue
        let isFull = mine > limit
        guard count > LongTexts.limit, isFull || all > limitInAll && (mine > count || count > Self.small) else {
            return
        }
        remove(count)
        throw .overloaded(
            "The request was carried out, but its answer is lost: it has \(count) bytes, and "
                + (isFull
                    ? "\(mine - count) bytes wait for this client to read them; at most \(limit) may wait. "
                    : "\(all - count) bytes wait for all clients to read them; at most \(limitInAll) may wait. ")
                + "Read the answers, or ask for less.")
    }

    private static func unread(_ clients: String, _ limit: Int) -> RPCError {
        .overloaded(
            "More than \(limit) bytes of answers wait for \(clients) to read them. Read them, then try again.")
    }
}
