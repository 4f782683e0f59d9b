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

/// The goal of a row. A condition that is nil does not apply.
public struct Goal: Codable, Sendable {
    /// The maximum, in the unit of the row.
    public var atMost: Double?
    /// The maximum as a multiple of the first floor.
    public var timesFloor: Double?
    /// The minimum, for figures of which more is better.
    public var atLeast: Double?
    /// The minimum as a multiple of the first floor, for figures of which more is better.
    public var atLeastOfFloor: Double?
    /// The maximum factor of growth from the smallest size to this one.
    public var growth: Double?
    /// The name of a peer whose figure in the same run must be larger.
    public var below: String?
    /// The row is judged only if the first floor is at most this value, in the unit of the row.
    public var floorAtMost: Double?

    public init(
        atMost: Double? = nil, timesFloor: Double? = nil, atLeast: Double? = nil, atLeastOfFloor: Double? = nil,
        growth: Double? = nil, below: String? = nil, floorAtMost: Double? = nil
    ) {
        self.atLeast = atLeast
        (self.atMost, self.timesFloor, self.atLeastOfFloor) = (atMost, timesFloor, atLeastOfFloor)
        (self.growth, self.below, self.floorAtMost) = (growth, below, floorAtMost)
    }
}

/// Keeps the compiler from leaving out the computation of a number.
@inline(never) public func keep(_ number: Int) { kept = number }
nonisolated(unsafe) private var kept = 0  // Nobody reads it.
