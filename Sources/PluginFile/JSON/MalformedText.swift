/// The error of a text that is not valid in its format.
struct MalformedText: Error {
    /// The problem: the end of a sentence that begins with the name of the text.
    private let problem: String
    /// The position of the problem, as the number of a byte; `nil` for the whole text.
    private let position: Int?
    private let advice: String

    init(_ problem: String, at position: Int? = nil, advice: String = "") {
        (self.problem, self.position, self.advice) = (problem, position, advice)
    }

    /// The problem, and the number of the byte.
    var message: String { position.map { "\(problem) at byte \($0).\(advice)" } ?? problem }

    /// Returns the problem, with its line and column in a file.
    func message(in text: UnsafeRawBufferPointer) -> String {
        position.map { "\(problem) at \(Self.lineAndColumn($0, in: text)).\(advice)" } ?? problem
    }

    /// Returns the line and the column of a byte, both from 1: `line 3, column 5`. Columns count Unicode scalars.
    static func lineAndColumn(_ position: Int, in text: UnsafeRawBufferPointer) -> String {
        let before = text.prefix(max(0, min(position, text.count)))
        let line = before.count { $0 == UInt8(ascii: "\n") } + 1
        let start = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
        var column = 1
        for byte in before[start...] where byte & 0xC0 != 0x80 { column += 1 }
        if start == 0, text.starts(with: [0xEF, 0xBB, 0xBF]), position >= 3 { column -= 1 }
        return "line \(line), column \(column)"
    }
}

/// Limits runs of combining marks. Comparing and hashing strings sorts each run in quadratic time: megabytes of
/// combining marks would occupy a thread for hours.
enum CombiningMarks {
    /// The maximum length of a run. Unicode's Stream-Safe Text Format allows 30.
    static let limit = 256

    /// Checks a string.
    ///
    /// - Parameter start: The position of the string in the whole text, for the message.
    static func check(_ string: String, at start: Int) throws(MalformedText) {
        // A combining mark has at least two bytes.
        guard string.utf8.count > limit * 2 else { return }
        var count = 0
        for scalar in string.unicodeScalars {
            if scalar.value < 0x300 || scalar.properties.canonicalCombiningClass == .notReordered {
                count = 0
            } else {
                count += 1
                guard count <= limit else {
                    throw MalformedText(
                        "has more than \(limit) combining marks in a row, in the string", at: start)
                }
            }
        }
    }
}
