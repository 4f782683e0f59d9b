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
    /// How many of what there are, or how large it is; nil where that does not matter.
    public let size: Int?
    /// By what the peers' programs name the same work; nil where they have nothing like it.
    public let peer: String?
    public let ours: Work
    public let floors: [Work]
    public let goal: Goal
    /// How many of the thing that is counted one call does: subscribers of an event.
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

/// What is to be reached; nothing where nothing is said.
public struct Goal: Codable, Sendable {
    /// At most so much, in the unit of the row.
    public var atMost: Double?
    /// At most so many times the first floor.
    public var timesFloor: Double?
    /// At least so much, for figures of which more is better.
    public var atLeast: Double?
    /// At least so many times the first floor, for figures of which more is better.
    public var atLeastOfFloor: Double?
    /// From the smallest size to this one at most so many times.
    public var growth: Double?
    /// Less than this peer in the same run.
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

/// Keeps the compiler from leaving out what led to a number.
@inline(never) public func keep(_ number: Int) { kept = number }
nonisolated(unsafe) private var kept = 0  // Nobody reads it.
