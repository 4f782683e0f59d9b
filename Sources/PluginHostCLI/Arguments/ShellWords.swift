internal import PluginABI

/// Splits a line into words at white space, as a shell does. Characters can be protected by single quotes, double
/// quotes and backslashes.
func shellWords(_ line: String) throws(PluginError) -> [String] {
    var words: [String] = []
    var word: String?
    var quote: Character?
    var rest = line[...]
    while let character = rest.popFirst() {
        switch (character, quote) {
        case (let character, let open?) where character == open: quote = nil
        case ("\\", nil):
            guard let escaped = rest.popFirst() else {
                throw .usage("The line ends with a backslash.")
            }
            word = (word ?? "") + String(escaped)
        case ("\\", "\"") where rest.first == "\"" || rest.first == "\\":
            word = (word ?? "") + String(rest.removeFirst())
        case ("\"", nil), ("'", nil):
            quote = character
            word = word ?? ""
        case (_, nil) where character.isWhitespace:
            if let finished = word { words.append(finished) }
            word = nil
        default: word = (word ?? "") + String(character)
        }
    }
    if let quote { throw .usage("The quote \(quote) is not closed.") }
    if let word { words.append(word) }
    return words
}
