internal import FoundationEssentials
internal import PluginABI

/// The generations as a table for people, from the record that `list --all` gives.
struct GenerationTable: Sendable {
    let record: Value
    var style: Style = .plain
    /// Where longer lines are cut; nil for never.
    var width: Int? = nil

    private static let stateColumn = 3

    var text: String {
        let generations = record["generations"]?.list ?? []
        if generations.isEmpty { return "No modules." }
        var table = TextTable(
            titles: ["GENERATION", "MODULE", "VERSION", "STATE", "SINCE", "CALLS", "OBJECTS", "MAPPED", "FILE"],
            style: style, width: width)
        for generation in generations {
            let state = generation["state"]?.string ?? "-"
            let calls = generation["calls"]?.list ?? []
            table.add([
                "\(generation["generation"]?.int ?? 0)", generation["name"]?.string ?? "-",
                generation["version"]?.string ?? "-", state, generation["since"]?.string ?? "-", "\(calls.count)",
                "\(generation["objects"]?.int ?? 0)", (generation["mappedBytes"]?.int ?? 0).inBytes,
                generation["file"]?.string ?? "-",
            ]) { [style] cell, column in
                column == Self.stateColumn ? style(cell, Style.colour(ofState: state)) : cell
            }
            for call in calls { table.addNote(style(Self.note(of: call).printable, .dim)) }
            if state == "draining", let reason = generation["reason"]?.string {
                table.addNote(style(reason.printable, .yellow))
            }
        }
        let (count, bytes) = (record["retired"]?["count"]?.int ?? 0, record["retired"]?["mappedBytes"]?.int ?? 0)
        return "\(table.text)\n\(count) \(count == 1 ? "generation" : "generations") retired, \(bytes.inBytes) mapped"
    }

    private static func note(of call: Value) -> String {
        var note = "runs \(call["action"]?.string ?? "")"
        if let caller = call["caller"]?.string { note += " for \(caller)" }
        if let since = call["since"]?.string { note += " since \(since)" }
        return note
    }
}

extension Int {
    /// A number of bytes: `1.4 MiB`.
    var inBytes: String {
        var (size, unit) = (Double(self), 0)
        let units = ["B", "KiB", "MiB", "GiB", "TiB"]
        while size >= 1024, unit + 1 < units.count { (size, unit) = (size / 1024, unit + 1) }
        let tenths = Int((size * 10).rounded())
        return unit == 0 || tenths >= 1000
            ? "\(tenths / 10) \(units[unit])" : "\(tenths / 10).\(tenths % 10) \(units[unit])"
    }
}
