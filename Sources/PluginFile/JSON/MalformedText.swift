/// A text that is not what its format demands.
struct MalformedText: Error {
    /// What is wrong, and where: the rest of a sentence that begins with the name of the text.
    let message: String

    init(_ message: String) { self.message = message }
}

/// Combining marks that follow each other. Comparing and hashing strings sorts each such run, in time that grows with
/// the square of its length: megabytes of them would keep a thread for hours.
enum CombiningMarks {
    /// The most that are read. Unicode's Stream-Safe Text Format has 30.
    static let limit = 256

    /// - Parameter start: Where the string stands in the whole text, for the message.
    static func check(_ string: String, at start: Int) throws(MalformedText) {
        // A mark has two bytes or more.
        guard string.utf8.count > limit * 2 else { return }
        var count = 0
        for scalar in string.unicodeScalars {
            if scalar.value < 0x300 || scalar.properties.canonicalCombiningClass == .notReordered {
                count = 0
            } else {
                count += 1
                guard count <= limit else {
                    throw MalformedText(
                        "has more than \(limit) combining marks in a row, in the string at byte \(start).")
                }
            }
        }
    }
}
