internal import PluginABI

/// The modules as a table for people, from the records that `list` gives.
struct ModuleTable: Sendable {
    let modules: [Value]
    var style: Style = .plain
    /// Where longer lines are cut; nil for never.
    var width: Int? = nil

    private static let stateColumn = 2

    var text: String {
        if modules.isEmpty { return "No modules." }
        var table = TextTable(
            titles: ["MODULE", "VERSION", "STATE", "TARGETS", "FILE"], style: style, width: width)
        for module in modules {
            let cells = Self.cells(module)
            let colour = Style.colour(ofState: cells[Self.stateColumn])
            table.add(cells) { [style] cell, column in column == Self.stateColumn ? style(cell, colour) : cell }
            if let message = module["error"]?["message"]?.string {
                table.addNote(style(message.printable, .red))
            }
        }
        return table.text
    }

    private static func cells(_ module: Value) -> [String] {
        let targets = (module["targets"]?.list ?? []).compactMap(\.string)
        return [
            module["name"]?.string ?? "-",
            module["version"]?.string ?? "-",
            module["state"]?.string ?? "-",
            targets.isEmpty ? "-" : targets.joined(separator: ", "),
            module["file"]?.string ?? "-",
        ]
    }
}
