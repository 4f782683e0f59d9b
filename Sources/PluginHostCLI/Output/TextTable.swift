internal import PluginABI

/// A table of aligned columns, with notes below its rows. The last column is cut, at its beginning, where lines would be
/// too long.
struct TextTable: Sendable {
    private let titles: [String]
    private let style: Style
    private let width: Int?
    private var rows: [Row] = []

    private enum Row: Sendable {
        case cells([String], @Sendable (_ cell: String, _ column: Int) -> String)
        case note(String)
    }

    init(titles: [String], style: Style, width: Int?) {
        (self.titles, self.style, self.width) = (titles, style, width)
    }

    /// Adds a row; `paint` colours its cells.
    mutating func add(
        _ cells: [String], paint: @escaping @Sendable (_ cell: String, _ column: Int) -> String = { cell, _ in cell }
    ) {
        rows.append(.cells(cells.map(\.printable), paint))
    }

    /// Adds a line below the last row.
    mutating func addNote(_ text: String) { rows.append(.note("  " + text)) }

    var text: String {
        let all = rows.compactMap { if case .cells(let cells, _) = $0 { cells } else { nil } } + [titles]
        let widths = titles.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
        let head = line(titles, widths) { cell, _ in style(cell, .dim) }
        let lines = rows.map { row in
            switch row {
            case .cells(let cells, let paint): line(cells, widths, paint)
            case .note(let text): text
            }
        }
        return ([head] + lines).joined(separator: "\n")
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
