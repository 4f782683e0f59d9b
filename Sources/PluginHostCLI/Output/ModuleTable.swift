internal import PluginABI

/// The modules as a table for people, from the records that `list` gives.
struct ModuleTable: Sendable {
    let modules: [Value]
    var style: Style = .plain
    /// Where longer lines are cut; nil for never.
    var width: Int? = nil

    private static let titles = ["MODULE", "VERSION", "STATE", "TARGETS", "FILE"]
    private static let stateColumn = 2

    var text: String {
        if modules.isEmpty { return "No modules." }
        let rows = modules.map(Self.cells)
        let widths = Self.titles.indices.map { column in
            ([Self.titles] + rows).map { $0[column].count }.max() ?? 0
        }
        var lines = [line(Self.titles, widths) { cell, _ in style(cell, .dim) }]
        for (module, row) in zip(modules, rows) {
            lines.append(
                line(row, widths) { cell, column in
                    column == Self.stateColumn ? style(cell, Style.colour(ofState: row[column])) : cell
                })
            if let message = module["error"]?["message"]?.string {
                lines.append(style("  " + message.printable, .red))
            }
        }
        return lines.joined(separator: "\n")
    }

    private static func cells(_ module: Value) -> [String] {
        let targets = (module["targets"]?.list ?? []).compactMap(\.string)
        return [
            module["name"]?.string ?? "-",
            module["version"]?.string ?? "-",
            module["state"]?.string ?? "-",
            targets.isEmpty ? "-" : targets.joined(separator: ", "),
            module["file"]?.string ?? "-",
        ].map(\.printable)
    }

    private func line(_ cells: [String], _ widths: [Int], _ paint: (String, Int) -> String) -> String {
        var used = 0
        var line = ""
        for (column, cell) in cells.enumerated() {
            let isLast = column == cells.count - 1
            let text = isLast ? cut(cell, to: width.map { max(8, $0 - used) }) : cell
            let padding = isLast ? "" : String(repeating: " ", count: widths[column] - text.count + 2)
            line += paint(text, column) + padding
            used += text.count + padding.count
        }
        return line
    }

    private func cut(_ text: String, to limit: Int?) -> String {
        guard let limit, text.count > limit else { return text }
        return "…" + text.suffix(limit - 1)
    }
}
