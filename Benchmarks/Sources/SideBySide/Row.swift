import Work

/// One line of the table.
struct Row: Codable {
    let what: String
    var size: Int?
    /// `ns`, `µs`, `ms`, `KiB`, or `×`, of which more is better.
    let unit: String
    /// The median.
    var ours: Double
    /// The minimum of the repetitions.
    var least: Double?
    /// `ours` in steps of the reference (``Reference/arithmetic``); nil if the figure is not a time.
    var steps: Double?
    /// Whether the reference stayed the same, so that the row can be judged.
    var isSteady = true
    /// The first call, cold, in the unit of the row.
    var first: Double?
    /// The floors; ratios and goals refer to the first one.
    var floors: [Other] = []
    var peer: String?
    var peers: [Other] = []
    var goal = Goal()
    /// Ours divided by ours at the smallest size.
    var growth: Double?
    /// The parts of the goal that are missed by more than ``tolerance``, in words; empty if there are none.
    var missed: [String] = []
    /// Whether no part of the goal is missed, but one is too close to tell.
    var isClose = false

    struct Other: Codable {
        let name: String
        let value: Double
        /// The value in steps of the reference; nil if it was not measured together with the reference.
        var steps: Double? = nil
    }

    init(_ what: String, size: Int? = nil, unit: String, ours: Double) {
        (self.what, self.size, self.unit, self.ours) = (what, size, unit, ours)
    }

    /// The median and the minimum of repetitions.
    init(_ what: String, size: Int? = nil, unit: String, of times: some Collection<Double>) {
        self.init(what, size: size, unit: unit, ours: times.median)
        least = times.min()
    }

    /// Ours divided by the first floor; nil if the floor is of another kind.
    var ratio: Double? { unit == "×" && goal.atLeastOfFloor == nil ? nil : floors.first.map(times) }

    /// Ours divided by another figure of the row. Figures that were measured together with the reference are compared
    /// in its steps, so that the speed of the machine does not matter.
    func times(_ other: Other) -> Double {
        if let steps, let others = other.steps { return steps / others }
        return ours / other.value
    }

    /// Ours, at the speed of the machine on which the goals were set.
    private var comparable: Double {
        guard let steps, let nanoseconds = ["ns": 1, "µs": 1e3, "ms": 1e6][unit] else { return ours }
        return steps * Reference.arithmeticOfGoals / nanoseconds
    }

    /// Compares with the goal.
    mutating func judge() {
        var parts: [(text: String, excess: Double)] = []
        if let limit = goal.atMost { parts.append(("≤ \(Row.text(limit)) \(unit)", comparable / limit)) }
        if let limit = goal.timesFloor, let ratio { parts.append(("≤ \(Row.text(limit)) × floor", ratio / limit)) }
        if let limit = goal.atLeast { parts.append(("≥ \(Row.text(limit)) \(unit)", limit / ours)) }
        if let limit = goal.atLeastOfFloor, let ratio {
            parts.append(("≥ \(Row.text(limit)) × floor", limit / ratio))
        }
        if let limit = goal.growth, let growth { parts.append(("growth ≤ \(Row.text(limit)) ×", growth / limit)) }
        if let name = goal.below, let peer = peers.first(where: { $0.name == name }) {
            parts.append(("below \(name)", times(peer)))
        }
        missed = parts.filter { $0.excess > 1 + Self.tolerance }.map(\.text)
        isClose = missed.isEmpty && parts.contains { $0.excess > 1 - Self.tolerance }
    }

    /// Figures that differ from a goal by no more than this fraction are not told apart from it, since two runs of the
    /// same build differ by as much.
    static let tolerance = 0.05

    /// The verdict in words; empty if the row has no goal.
    var verdict: String {
        if goalText.isEmpty { return "" }
        if !isSteady { return "not judged: the machine changed its speed" }
        if let name = goal.below, !peers.contains(where: { $0.name == name }) {
            return "not judged: \(name) is missing"
        }
        if let limit = goal.floorAtMost, let floor = floors.first, floor.value > limit {
            return "not judged: \(floor.name) > \(Row.text(limit)) \(unit)"
        }
        return isClose ? "within 5 %" : missed.isEmpty ? "reached" : "MISSED"
    }

    /// The goal in words.
    var goalText: String {
        var parts: [String] = []
        if let limit = goal.atMost { parts.append("≤ \(Row.text(limit)) \(unit)") }
        if let limit = goal.timesFloor { parts.append("≤ \(Row.text(limit)) × floor") }
        if let limit = goal.atLeast { parts.append("≥ \(Row.text(limit)) \(unit)") }
        if let limit = goal.atLeastOfFloor { parts.append("≥ \(Row.text(limit)) × floor") }
        if let limit = goal.growth { parts.append("growth ≤ \(Row.text(limit)) ×") }
        if let name = goal.below { parts.append("below \(name)") }
        return parts.joined(separator: ", ")
    }

    /// Returns a number with three significant digits.
    static func text(_ number: Double) -> String {
        let digits = number >= 100 ? 0 : number >= 10 ? 1 : 2
        let scale = [1.0, 10, 100][digits]
        let rounded = (number * scale).rounded() / scale
        if rounded == rounded.rounded(), digits == 0 || rounded == number {
            let whole = String(Int(rounded))
            return whole.count > 4 ? grouped(whole) : whole
        }
        return String(rounded)
    }

    private static func grouped(_ digits: String) -> String {
        var text = ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index) % 3 == 0 { text.append(",") }
            text.append(digit)
        }
        return text
    }
}

extension [Row] {
    /// Adds what depends on the whole table and the peers.
    func completed(with peers: [Peer]) -> [Row] {
        map { row in
            var row = row
            row.peers += peers.filter { $0.work == row.peer && ($0.size == nil || $0.size == row.size) }
                .map { Row.Other(name: $0.name, value: $0.value) }
            let smallest = filter { $0.what == row.what && $0.size != nil }.min { $0.size! < $1.size! }
            if let smallest, smallest.size != row.size {
                row.growth = row.times(Row.Other(name: row.what, value: smallest.ours, steps: smallest.steps))
            }
            row.judge()
            return row
        }
    }
}
