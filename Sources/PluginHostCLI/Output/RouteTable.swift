internal import PluginABI

/// The routes as a table for people, from the records that `routes` gives.
struct RouteTable: Sendable {
    let routes: [Value]
    var style: Style = .plain
    /// Where longer lines are cut; nil for never.
    var width: Int? = nil

    var text: String {
        if routes.isEmpty { return "No routes." }
        var table = TextTable(titles: ["PATTERN", "ACTION", "OWNER", "SUMMARY"], style: style, width: width)
        for route in routes {
            table.add(["pattern", "action", "owner", "summary"].map { route[$0]?.string ?? "" })
            let others = (route["overlaps"]?.list ?? []).compactMap(\.string)
            if !others.isEmpty {
                table.addNote(style("overlaps \(others.joined(separator: ", "))".printable, .yellow))
            }
            if route["overlapsComplete"]?.bool == false {
                table.addNote(style("may overlap others: too large to be compared with all of them", .yellow))
            }
        }
        return table.text
    }
}
