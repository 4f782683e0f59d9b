extension Character {
    /// One of A to Z and a to z.
    var isPlainLetter: Bool { isASCII && isLetter }

    /// One of 0 to 9.
    var isPlainDigit: Bool { isASCII && isNumber }
}
