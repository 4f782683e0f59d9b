internal import PluginABI
internal import Synchronization

/// How many bytes of answers wait for clients to read them, of one client and of all, and how many may.
final class ClientLoad: Sendable {
    /// Of all clients of a server.
    final class Total: Sendable {
        fileprivate let bytes = Atomic(0)
    }

    /// A client that has read all its answers always has room for one of this many bytes, however much other clients have
    /// left unread.
    private static let small = 1 << 20

    private let bytes = Atomic(0)
    private let total: Total
    private let limit: Int
    private let limitInAll: Int

    init(_ total: Total, limit: Int, limitInAll: Int) {
        self.total = total
        self.limit = limit
        self.limitInAll = limitInAll
    }

    deinit { total.bytes.subtract(value, ordering: .relaxed) }

    var value: Int { bytes.load(ordering: .relaxed) }

    func add(_ count: Int) {
        bytes.add(count, ordering: .relaxed)
        total.bytes.add(count, ordering: .relaxed)
    }

    func remove(_ count: Int) { add(-count) }

    /// Whether another request may begin.
    ///
    /// - Throws: `overloaded`.
    func admit() throws(RPCError) {
        if value >= limit { throw Self.unread("this client", limit) }
        if value > 0, total.bytes.load(ordering: .relaxed) >= limitInAll {
            throw Self.unread("all clients", limitInAll)
        }
    }

    /// Adds an answer that will have at least so many bytes. An answer that is not long (``LongTexts``) always has room:
    /// the number of requests that run bounds those.
    ///
    /// - Throws: `overloaded` when there is no room for it; then nothing is added.
    func reserve(_ count: Int) throws(RPCError) {
        let mine = bytes.add(count, ordering: .relaxed).newValue
        let all = total.bytes.add(count, ordering: .relaxed).newValue
        let isFull = mine > limit
        guard count > LongTexts.limit, isFull || all > limitInAll && (mine > count || count > Self.small) else {
            return
        }
        remove(count)
        throw .overloaded(
            "The request was carried out, and its answer is lost: it has \(count) bytes, and "
                + (isFull
                    ? "\(mine - count) wait for this client to be read, where at most \(limit) may wait. "
                    : "\(all - count) wait for all clients to be read, where at most \(limitInAll) may wait. ")
                + "Read the answers, or ask for less.")
    }

    private static func unread(_ clients: String, _ limit: Int) -> RPCError {
        .overloaded(
            "More than \(limit) bytes of answers wait for \(clients) to be read. Read them, then try again.")
    }
}
