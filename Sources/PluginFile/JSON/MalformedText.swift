/// The error of a text that is not valid in its format.
struct MalformedText: Error {
    /// What is wrong, and where: the rest of a sentence that begins with the name of the text.
    let message: String

    init(_ message: String) { self.message = message }
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
                        "has more than \(limit) combining marks in a row, in the string at byte \(start).")
                }
            }
        }
    }
}
