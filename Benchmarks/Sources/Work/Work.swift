public import Figures

/// Something whose time is measured.
public struct Work {
    public let name: String
    public let body: Body

    public enum Body {
        /// Does the work `count` times.
        case synchronous((_ count: Int) throws -> Void)
        case asynchronous((_ count: Int) async throws -> Void)
    }

    public init(_ name: String, _ body: @escaping (_ count: Int) throws -> Void) {
        (self.name, self.body) = (name, .synchronous(body))
    }

    public init(_ name: String, async body: @escaping (_ count: Int) async throws -> Void) {
        (self.name, self.body) = (name, .asynchronous(body))
    }
}

/// The library's work beside the floors: the least that any way of doing it would cost, in the same run.
public struct Comparison {
    /// What is done; rows of one name and several sizes show the growth.
    public let what: String
    /// The number of modules, actions or routes, or the size of the payload; nil if neither matters.
    public let size: Int?
    /// The name of the same work in the programs of the peers; nil if they have no such work.
    public let peer: String?
    public let ours: Work
    public let floors: [Work]
    public let goal: Goal
    /// The number by which the time of one call is divided: the number of subscribers of an event.
    public let share: Int

    init(
        _ what: String, size: Int? = nil, peer: String? = nil, share: Int = 1, goal: Goal = Goal(),
        floors: [Work] = [], ours: @escaping (Int) throws -> Void
    ) {
        self.init(what, size, peer, share, goal, floors, Work(what, ours))
    }

    init(
        _ what: String, size: Int? = nil, peer: String? = nil, goal: Goal = Goal(), floors: [Work] = [],
        async ours: @escaping (Int) async throws -> Void
    ) {
        self.init(what, size, peer, 1, goal, floors, Work(what, async: ours))
    }

    private init(
        _ what: String, _ size: Int?, _ peer: String?, _ share: Int, _ goal: Goal, _ floors: [Work], _ ours: Work
    ) {
        (self.what, self.size, self.peer, self.share) = (what, size, peer, share)
        (self.goal, self.floors, self.ours) = (goal, floors, ours)
    }
}

/// Keeps the compiler from leaving out the computation of a number.
@inline(never) public func keep(_ number: Int) { kept = number }
nonisolated(unsafe) private var kept = 0  // Nobody reads it.
