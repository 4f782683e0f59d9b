internal import PluginABI

/// A table of records for people, with aligned columns and notes below the rows. If lines are too long, the beginning
/// of the last column is cut off.
struct RecordTable: Sendable {
    struct Column: Sendable {
        let title: String
        /// Returns the text of a record in this column.
        let cell: @Sendable (Value) -> String
        var colour: (@Sendable (Value) -> Style.Colour)? = nil
    }

    struct Note {
        let text: String
        let colour: Style.Colour
    }

    /// The text that replaces a table without rows; `nil` to print only the titles.
    var whenEmpty: String? = nil
    let columns: [Column]
    /// Returns the notes below the row of a record.
    var notes: @Sendable (Value) -> [Note] = { _ in [] }

    /// Returns the table as text.
    ///
    /// - Parameter width: The width to which lines are cut; `nil` for no limit.
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
    /// Makes a column for an entry that is text.
    static func text(_ title: String, _ key: String, absent: String = "") -> Self {
        Self(title: title) { $0[key]?.string ?? absent }
    }

    static func number(_ title: String, _ key: String) -> Self {
        Self(title: title) { "\($0[key]?.int ?? 0)" }
    }

    /// Makes a column for a number of events per second.
    static func rate(_ title: String, _ key: String) -> Self {
        Self(title: title) { inTenths($0[key]?.double ?? 0) }
    }

    /// Makes a column for a time, which may be missing.
    static func time(_ title: String, _ key: String) -> Self {
        Self(title: title) { $0[key]?.string.map(inLocalTime) ?? "-" }
    }

    /// Makes a column for a number of bytes.
    static func size(_ title: String, _ key: String) -> Self {
        Self(title: title) { ($0[key]?.int ?? 0).inBytes }
    }

    /// Makes a column for a number of seconds, which may be missing.
    static func duration(_ title: String, _ key: String) -> Self {
        Self(title: title) { $0[key]?.double.map(inShort) ?? "-" }
    }

    /// Makes a column that shows a number of seconds as milliseconds.
    static func milliseconds(_ title: String, _ key: String) -> Self {
        Self(title: title) { inMilliseconds(seconds: $0[key]?.double ?? 0) }
    }

    /// The column of a module's state.
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
