internal import PluginABI

/// What was called, as a table for people, from the records that `stats` gives.
struct StatisticsTable: Sendable {
    let statistics: [Value]
    var style: Style = .plain
    /// Where longer lines are cut; nil for never.
    var width: Int? = nil

    var text: String {
        if statistics.isEmpty { return "No calls yet." }
        var table = TextTable(
            titles: ["MODULE", "CALLS", "ERRORS", "MEDIAN", "99 %", "MAXIMUM", "ACTION"], style: style, width: width)
        for action in statistics {
            let durations = ["median", "percentile99", "maximum"].map { Self.text(seconds: action[$0]?.double) }
            let counts = ["calls", "errors"].map { "\(action[$0]?.int ?? 0)" }
            table.add([action["module"]?.string ?? ""] + counts + durations + [action["action"]?.string ?? ""])
        }
        return table.text
    }

    /// With a unit that leaves one to three digits before the point.
    static func text(seconds: Double?) -> String {
        guard let seconds else { return "-" }
        for (unit, scale) in [("s", 1.0), ("ms", 1e3), ("µs", 1e6)] where seconds * scale >= 1 {
            let tenths = Int((seconds * scale * 10).rounded())
            return "\(tenths / 10).\(tenths % 10) \(unit)"
        }
        return "\(Int((seconds * 1e9).rounded())) ns"
    }
}
