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
    /// The maximum of the first floor, in the unit of the row, above which the goal can be reached, but not missed.
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
