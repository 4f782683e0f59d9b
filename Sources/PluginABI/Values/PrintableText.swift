// Text from outside, in what people read.

extension Unicode.Scalar {
    /// Whether a terminal may do something else with it than show it where it stands: the control characters of ASCII
    /// and of Latin-1 (C0, DEL, C1), marks that change the direction of writing, and separators of lines.
    package var isTerminalControl: Bool {
        switch value {
        case 0x20..<0x7F: false
        case 0..<0x20, 0x7F..<0xA0, 0x61C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}

extension String {
    /// The text with control characters as escapes (`\n`, `\t`, `\u{1b}`): on one line, and without power over the
    /// terminal that shows it.
    package var printable: String {
        guard unicodeScalars.contains(where: \.isTerminalControl) else { return self }
        var text = ""
        for scalar in unicodeScalars { text.appendPrintable(scalar) }
        return text
    }

    /// The text with `_` in the place of each control character, for a name that is to be shown as it is; never longer.
    package var withoutTerminalControls: String {
        guard unicodeScalars.contains(where: \.isTerminalControl) else { return self }
        var text = ""
        for scalar in unicodeScalars { text.unicodeScalars.append(scalar.isTerminalControl ? "_" : scalar) }
        return text
    }

    /// A name, a URL, a path or another text from outside, for a message: printable, and cut where it is longer than 200
    /// characters.
    package var shortened: String {
        // Not counted in `Character`s: one of them can be a megabyte of combining marks.
        let limit = 200
        if utf8.count <= limit { return printable }
        var text = ""
        for (index, scalar) in unicodeScalars.enumerated() {
            if index == limit { return text + "…" }
            text.appendPrintable(scalar)
        }
        return text
    }

    private mutating func appendPrintable(_ scalar: Unicode.Scalar) {
        switch scalar {
        case "\n": self += "\\n"
        case "\t": self += "\\t"
        case let scalar where scalar.isTerminalControl: self += "\\u{\(String(scalar.value, radix: 16))}"
        default: unicodeScalars.append(scalar)
        }
    }
}
