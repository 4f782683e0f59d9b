internal import PluginABI

/// How records of one kind stand in a table for people: aligned columns, with notes below the rows. The last column is
/// cut, at its beginning, where lines would be too long.
struct RecordTable: Sendable {
    struct Column: Sendable {
        let title: String
        /// What a record has in this column.
        let cell: @Sendable (Value) -> String
        var colour: (@Sendable (Value) -> Style.Colour)? = nil
    }

    struct Note {
        let text: String
        let colour: Style.Colour
    }

    /// What stands in place of a table without rows; nil for the titles alone.
    var whenEmpty: String? = nil
    let columns: [Column]
    /// What stands below the row of a record.
    var notes: @Sendable (Value) -> [Note] = { _ in [] }

    /// - Parameter width: Where longer lines are cut; nil for never.
    func text(_ records: [Value], style: Style = .plain, width: Int? = nil) -> String {
        if records.isEmpty, let whenEmpty { return whenEmpty }
        let titles = columns.map(\.title)
        let rows = records.map { record in columns.map { $0.cell(record).printable } }
        let widths = columns.indices.map { column in (rows + [titles]).map { $0[column].count }.max() ?? 0 }
        var lines = [line(titles, widths, width) { cell, _ in style(cell, .dim) }]
        for (record, cells) in zip(records, rows) {
            lines.append(
                line(cells, widths, width) { cell, column in column.colour.map { style(cell, $0(record)) } ?? cell })
            lines += notes(record).map { "  " + style($0.text.printable, $0.colour) }
        }
        return lines.joined(separator: "\n")
    }

    private func line(
        _ cells: [String], _ widths: [Int], _ width: Int?, _ paint: (String, Column) -> String
    ) -> String {
        var used = 0
        var line = ""
        for (index, cell) in cells.enumerated() {
            let isLast = index == cells.count - 1
            let text = isLast ? cut(cell, to: width.map { max(8, $0 - used) }) : cell
            let padding = isLast ? "" : String(repeating: " ", count: widths[index] - text.count + 2)
            line += paint(text, columns[index]) + padding
            used += text.count + padding.count
        }
        return line
    }

    private func cut(_ text: String, to limit: Int?) -> String {
        guard let limit, text.count > limit else { return text }
        return "…" + text.suffix(limit - 1)
    }
}

extension RecordTable.Column {
    /// An entry that is text.
    static func text(_ title: String, _ key: String, absent: String = "") -> Self {
        Self(title: title) { $0[key]?.string ?? absent }
    }

    static func number(_ title: String, _ key: String) -> Self {
        Self(title: title) { "\($0[key]?.int ?? 0)" }
    }

    /// A number of bytes.
    static func size(_ title: String, _ key: String) -> Self {
        Self(title: title) { ($0[key]?.int ?? 0).inBytes }
    }

    /// A number of seconds, or nothing.
    static func duration(_ title: String, _ key: String) -> Self {
        Self(title: title) { $0[key]?.double.map(inShort) ?? "-" }
    }

    /// A number of seconds, as milliseconds.
    static func milliseconds(_ title: String, _ key: String) -> Self {
        Self(title: title) { inMilliseconds(seconds: $0[key]?.double ?? 0) }
    }

    /// The state of a module.
    static let state = Self(title: "STATE") {
        $0["state"]?.string ?? "-"
    } colour: {
        Style.colour(ofState: $0["state"]?.string ?? "-")
    }
}

extension Console {
    func print(_ table: RecordTable, of records: Value) { print(text(of: table, records)) }

    func text(of table: RecordTable, _ records: Value) -> String {
        table.text(records.list ?? [], style: outputStyle, width: width)
    }
}
