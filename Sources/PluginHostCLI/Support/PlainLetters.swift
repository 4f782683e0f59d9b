extension Character {
    /// Whether the character is one of A to Z and a to z.
    var isPlainLetter: Bool { isASCII && isLetter }

    /// Whether the character is one of 0 to 9.
    var isPlainDigit: Bool { isASCII && isNumber }
}
