import Figures

/// The rows as text.
struct Table {
    let rows: [Row]

    func text() -> String {
        let header: [String] = [
            "WORK", "SIZE", "OURS", "LEAST", "STEPS", "FIRST", "FLOOR", "RATIO", "PEERS", "GROWTH", "TO REACH", "",
        ]
        let lines = [header] + rows.map(cells)
        let widths = header.indices.map { column in lines.map { line in line[column].count }.max() ?? 0 }
        return lines.map { (line: [String]) -> String in
            var text = ""
            for (column, cell) in line.enumerated() {
                let padding = String(repeating: " ", count: widths[column] - cell.count)
                text += [1, 2, 3, 4, 5, 7, 9].contains(column) ? padding + cell : cell + padding
                text += "  "
            }
            while text.last == " " { text.removeLast() }
            return text
        }.joined(separator: "\n")
    }

    private func cells(_ row: Row) -> [String] {
        let floors = row.floors.map { "\(Row.text($0.value)) \($0.name)" }
        let peers = row.peers.map { "\(Row.text($0.value)) \($0.name) (\(Row.text(row.times($0))) ×)" }
        return [
            row.what, row.size.map { Row.text(Double($0)) } ?? "", "\(Row.text(row.ours)) \(row.unit)",
            row.least.map(Row.text) ?? "", row.steps.map(Row.text) ?? "", row.first.map(Row.text) ?? "",
            floors.joined(separator: "; "),
            row.ratio.map { "\(Row.text($0)) ×" } ?? "", peers.joined(separator: "; "),
            row.growth.map { "\(Row.text($0)) ×" } ?? "", row.goalText,
            row.verdict,
        ]
    }
}
