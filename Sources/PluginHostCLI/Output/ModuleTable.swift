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
            for interceptor in module["interceptors"]?.list ?? [] {
                table.addNote(style(Self.note(of: interceptor).printable, Self.isOverdue(interceptor) ? .red : .dim))
            }
            if let message = module["error"]?["message"]?.string {
                table.addNote(style(message.printable, .red))
            }
        }
        return table.text
    }

    /// What an interceptor stands around, and whether it has run past deadlines.
    private static func note(of interceptor: Value) -> String {
        let scopes = (interceptor["scopes"]?.list ?? []).compactMap(\.string)
        var note = "interceptor \(interceptor["name"]?.string ?? "")"
        note += scopes.isEmpty ? ", not in effect" : " " + scopes.joined(separator: ", ")
        if isOverdue(interceptor) {
            let calls = (interceptor["overdue"]?.list ?? []).compactMap(\.string).joined(separator: ", ")
            note += "; past the deadline of \(calls) now"
        }
        if let count = interceptor["overruns"]?.int, count > 0 {
            note += "; ran past \(count) \(count == 1 ? "deadline" : "deadlines")"
            note += interceptor["lastOverrun"]?.string.map { ", the last in \($0)" } ?? ""
        }
        return note
    }

    private static func isOverdue(_ interceptor: Value) -> Bool { interceptor["overdue"]?.list?.isEmpty == false }

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
