/// One line of the table.
public struct Row: Codable, Sendable {
    public let what: String
    public var size: Int?
    /// `ns`, `µs`, `ms`, `KiB`, or `×`, of which more is better.
    public let unit: String
    /// The median.
    public let ours: Double
    /// The minimum of the repetitions.
    public var least: Double?
    /// The lower quartile of the repetitions; `ours` if there is only one figure.
    let low: Double
    /// `low` in steps of the reference (``Reference/arithmetic``); nil if the figure is not a time.
    public private(set) var steps: Double?
    /// What keeps figures near the goal from being judged; nil if nothing does.
    public var disturbance: String?
    /// The first call, cold, in the unit of the row.
    public var first: Double?
    /// The floors; ratios and goals refer to the first one.
    public var floors: [Other] = []
    public var peer: String?
    public var peers: [Other] = []
    public var goal = Goal()
    /// Figures that differ from a goal by no more than this factor are not told apart from it, since two runs of the
    /// same build differ by as much. 1 or more.
    public var margin = 1.05
    /// Ours divided by ours at the smallest size.
    public var growth: Double?
    /// The verdict in words; empty if the row has no goal.
    public private(set) var verdict = ""

    public struct Other: Codable, Sendable {
        public let name: String
        /// The median.
        public let value: Double
        /// The lower quartile; `value` if there is only one figure.
        let low: Double
        /// `low` in steps of the reference; nil if it was not measured together with the reference.
        var steps: Double?

        /// A figure of which there is only one.
        public init(_ name: String, _ value: Double) { (self.name, self.value, low) = (name, value, value) }

        /// The figures of repetitions.
        public init(_ name: String, of figures: some Collection<Double>) {
            (self.name, value, low) = (name, figures.median, figures.low)
        }

        /// Repetitions of work between which the reference was measured.
        fileprivate init(_ name: String, _ figure: Figure, share: Double, unit: Double) {
            self.init(name, of: figure.samples.map { $0.time / share / unit })
            steps = figure.steps / share
        }
    }

    public init(_ what: String, size: Int? = nil, unit: String, ours: Double) {
        (self.what, self.size, self.unit, self.ours, low) = (what, size, unit, ours, ours)
    }

    /// The figures of repetitions.
    public init(_ what: String, size: Int? = nil, unit: String, of figures: some Collection<Double>) {
        (self.what, self.size, self.unit, ours, low) = (what, size, unit, figures.median, figures.low)
        least = figures.min()
    }

    /// Repetitions of work between which the reference was measured.
    ///
    /// - Parameters:
    ///   - share: The number by which the times are divided.
    ///   - figures: Ours, then those of the floors, then those of the peers, with their names.
    ///   - floors: The number of floors.
    ///   - repetitions: How many were planned.
    public init(
        _ what: String, size: Int? = nil, unit: String, share: Int = 1, of figures: [(name: String, figure: Figure)],
        floors: Int, repetitions: Int
    ) {
        let others = figures.map {
            Other($0.name, $0.figure, share: Double(share), unit: Self.nanoseconds[unit] ?? 1)
        }
        (self.what, self.size, self.unit) = (what, size, unit)
        (ours, low, steps) = (others[0].value, others[0].low, others[0].steps)
        least = figures[0].figure.least / Double(share) / (Self.nanoseconds[unit] ?? 1)
        if !figures.allSatisfy({ $0.figure.isSteady(of: repetitions) }) { disturbance = Self.changedSpeed }
        self.floors = Array(others.dropFirst().prefix(floors))
        peers = Array(others.dropFirst(1 + floors))
    }

    private static let changedSpeed = "the machine changed its speed"
    /// The units that are times.
    static let nanoseconds = ["ns": 1, "µs": 1e3, "ms": 1e6]

    /// Adds the speed of the machine before and after the work of a row. Sizes and ratios do not depend on it, nor do
    /// times that are compared with those of a floor, because the two alternate.
    public mutating func refer(to before: Reference, _ after: Reference) {
        guard let unit = Self.nanoseconds[unit] else { return }
        if !before.isClose(to: after), goal.timesFloor == nil { disturbance = Self.changedSpeed }
        steps = Sample(time: low * unit, before: before, after: after).steps
    }

    /// Ours divided by the first floor; nil if the floor is of another kind.
    public var ratio: Double? { unit == "×" && goal.atLeastOfFloor == nil ? nil : floors.first.map(times) }

    /// Ours divided by another figure of the row. Figures that were measured together with the reference are compared
    /// in its steps, so that the speed of the machine does not matter.
    public func times(_ other: Other) -> Double {
        if let steps, let others = other.steps { return steps / others }
        return low / other.low
    }

    /// Adds what depends on other rows of the table and on peers, and judges the row.
    mutating func complete(with rows: [Row], _ others: [Other]) {
        peers += others
        let smallest = rows.filter { $0.what == what && $0.size != nil }.min { $0.size! < $1.size! }
        if let smallest, smallest.size != size {
            growth = if let steps, let least = smallest.steps { steps / least } else { low / smallest.low }
            if goal.growth != nil { disturbance = disturbance ?? smallest.disturbance }
        }
        verdict = judged
    }
}
