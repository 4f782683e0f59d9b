internal import Synchronization

/// The candidates of a completion that is being awaited.
final class Answer: Sendable {
    let candidates = Mutex<[Candidate]>([])
}

/// The effect of a completion on a line: the text that it inserts at the cursor, and the list that it shows.
struct CompletedLine {
    /// The maximum number of candidates of a list.
    private static let listLimit = 200
    /// A list with up to this number of candidates has a line for each, with its help.
    private static let helpLimit = 12

    private(set) var insertion = ""
    private(set) var list = ""

    /// Completes the last word as far as the candidates, which all begin with it, agree. Returns `nil` if there are no
    /// candidates.
    init?(_ words: WordsOfLine, _ candidates: [Candidate], columns: Int) {
        guard let first = candidates.first else { return nil }
        let word = words.words.last ?? ""
        let common = candidates.dropFirst().reduce(first.text[...]) { $0.commonPrefix(with: $1.text) }
        let suffix = String(common.dropFirst(word.count))
        insertion = words.openQuote == nil ? suffix.escapedForShell : suffix
        if candidates.count == 1 {
            if first.isWhole { insertion += (words.openQuote.map(String.init) ?? "") + " " }
        } else if suffix.isEmpty {
            list = Self.list(candidates, word, columns)
        }
    }

    /// The text for the editor: the insertion, and the list on further lines.
    var text: String { list.isEmpty ? insertion : "\(insertion)\n\(list)" }

    private static func list(_ candidates: [Candidate], _ word: String, _ columns: Int) -> String {
        // Of paths, only the last part is shown.
        let folder = word.lastIndex(of: "/").map { word[...$0].count } ?? 0
        let shown = candidates.prefix(listLimit).map { (String($0.text.dropFirst(folder)), $0.help) }
        let width = (shown.map(\.0.count).max() ?? 0) + 2
        let more = candidates.count > listLimit ? "\nand \(candidates.count - listLimit) more" : ""
        if shown.count <= helpLimit, shown.contains(where: { !$0.1.isEmpty }) {
            return shown.map { text, help in
                let line = text + String(repeating: " ", count: width - text.count) + help
                return String(line.prefix(max(20, columns - 1)))
            }.joined(separator: "\n") + more
        }
        let count = max(1, columns / width)
        let rows = (shown.count + count - 1) / count
        return (0..<rows).map { row in
            stride(from: row, to: shown.count, by: rows).map { index in
                let text = shown[index].0
                return index + rows < shown.count ? text + String(repeating: " ", count: width - text.count) : text
            }.joined()
        }.joined(separator: "\n") + more
    }
}

extension Substring {
    fileprivate func commonPrefix(with other: String) -> Substring {
        let difference = zip(indices, other).first { self[$0] != $1 }?.0
        return difference.map { self[..<$0] } ?? prefix(other.count)
    }
}
