extension Row {
    /// The factor for rows during which the machine changed its speed, whose two speeds differ by less, or was disturbed.
    static let disturbedMargin = 2.0

    /// A part of the goal.
    private struct Condition {
        let text: String
        /// What the figure is divided by its limit, or the reverse if more is better; nil if the condition does not
        /// concern this row.
        let excess: Double?
        /// Why it cannot be told whether the condition holds.
        var obstacle: String?
    }

    private var conditions: [Condition] {
        var all: [Condition] = []
        func add(_ text: String, _ excess: Double?, unless obstacle: String? = nil) {
            all.append(Condition(text: text, excess: excess, obstacle: excess == nil ? obstacle : nil))
        }
        let noFloor = "there is no floor"
        if let limit = goal.atMost { add("≤ \(Row.text(limit)) \(unit)", comparable / limit) }
        if let limit = goal.timesFloor {
            add("≤ \(Row.text(limit)) × floor", ratio.map { $0 / limit }, unless: noFloor)
        }
        if let limit = goal.atLeast { add("≥ \(Row.text(limit)) \(unit)", limit / ours) }
        if let limit = goal.atLeastOfFloor {
            add("≥ \(Row.text(limit)) × floor", ratio.map { limit / $0 }, unless: noFloor)
        }
        if let limit = goal.growth { add("growth ≤ \(Row.text(limit)) ×", growth.map { $0 / limit }) }
        if let name = goal.below {
            add("below \(name)", peers.first { $0.name == name }.map(times), unless: "\(name) is missing")
        }
        return all
    }

    /// Ours, at the speed of the machine on which the goals were set.
    private var comparable: Double {
        // `steps` is the time of `low`, whatever the unit.
        guard let steps, let unit = Row.nanoseconds[unit] else { return low }
        return steps * Reference.arithmeticOfGoals / unit
    }

    /// The goal in words.
    public var goalText: String { conditions.map(\.text).joined(separator: ", ") }

    /// Compares with the goal. Returns the verdict in words; an empty text if no part of the goal concerns this row.
    var judged: String {
        let conditions = conditions.filter { $0.excess != nil || $0.obstacle != nil }
        if conditions.isEmpty { return "" }
        if let obstacle = conditions.compactMap(\.obstacle).first { return "not judged: \(obstacle)" }
        let excess = conditions.compactMap(\.excess).max() ?? 0
        let margin = disturbance == nil ? self.margin : Self.disturbedMargin
        if excess < 1 / margin { return "reached" }
        // A floor that is too slow makes ours slower, never faster.
        if let limit = goal.floorAtMost, let floor = floors.first, floor.value > limit {
            return "not judged: \(floor.name) > \(Row.text(limit)) \(unit)"
        }
        if excess > margin { return "MISSED" }
        return disturbance.map { "not judged: \($0)" } ?? "within \(Int((100 * (margin - 1)).rounded())) %"
    }
}

extension [Row] {
    /// Adds what depends on the whole table and the peers, and judges the rows.
    ///
    /// - Parameter peers: The figures of other libraries for a row.
    public func completed(with peers: (Row) -> [Row.Other]) -> [Row] {
        map { row in
            var row = row
            row.complete(with: self, peers(row))
            return row
        }
    }
}

extension Row {
    /// Returns a number with three significant digits.
    public static func text(_ number: Double) -> String {
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
