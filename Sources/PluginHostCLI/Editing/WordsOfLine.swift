/// The words of a line that is being typed. Unlike ``shellWords(_:)``, this accepts quotes that are still open.
struct WordsOfLine {
    /// The last one is the word that is being typed; empty after a space.
    private(set) var words: [String] = [""]
    /// The part of the line that is the last word, as it was typed.
    private(set) var lastAsTyped = ""
    /// The quote that is still open.
    private(set) var openQuote: Character?

    init(_ line: String) {
        var isEscaped = false
        for character in line {
            if character.isWhitespace, openQuote == nil, !isEscaped {
                if !lastAsTyped.isEmpty { words.append("") }
                lastAsTyped = ""
                continue
            }
            lastAsTyped.append(character)
            if isEscaped {
                if openQuote == "\"", character != "\"", character != "\\" { words[words.count - 1].append("\\") }
                words[words.count - 1].append(character)
                isEscaped = false
            } else if character == "\\", openQuote != "'" {
                isEscaped = true
            } else if character == openQuote {
                openQuote = nil
            } else if openQuote == nil, character == "\"" || character == "'" {
                openQuote = character
            } else {
                words[words.count - 1].append(character)
            }
        }
    }
}
