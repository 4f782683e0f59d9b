// Makes text from outside the program safe to show to people.

extension Unicode.Scalar {
    /// Whether a terminal may do more with the scalar than show it in its position: control characters of ASCII and
    /// Latin-1 (C0, DEL, C1), marks that change the text direction, and line separators.
    package var isTerminalControl: Bool {
        switch value {
        case 0x20..<0x7F: false
        case 0..<0x20, 0x7F..<0xA0, 0x61C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}

extension String {
    /// The text with control characters as escapes (`\n`, `\t`, `\u{1b}`): on one line, and harmless to the terminal
    /// that shows it.
    package var printable: String {
        guard unicodeScalars.contains(where: \.isTerminalControl) else { return self }
        return unicodeScalars.reduce(into: "") { $0.appendPrintable($1) }
    }

    /// The text with `_` instead of each control character, for a name that is otherwise shown unchanged. Never longer.
    package var withoutTerminalControls: String {
        guard unicodeScalars.contains(where: \.isTerminalControl) else { return self }
        return String(UnicodeScalarView(unicodeScalars.map { $0.isTerminalControl ? "_" : $0 }))
    }

    /// The text (a name, a URL, a path or another text from outside the program) for a message: printable, and cut off
    /// after 200 characters.
    package var shortened: String {
        // The limit does not count `Character`s: one of them can contain a megabyte of combining marks.
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
