/// Colours, where the output is a terminal that has them.
struct Style: Sendable {
    enum Colour: String, Sendable {
        case red = "31"
        case green = "32"
        case yellow = "33"
        case dim = "2"
    }

    let isEnabled: Bool

    static let plain = Style(isEnabled: false)

    func callAsFunction(_ text: String, _ colour: Colour) -> String {
        isEnabled ? "\u{1B}[\(colour.rawValue)m\(text)\u{1B}[0m" : text
    }

    /// The colour of a module's state.
    static func colour(ofState state: String) -> Colour {
        switch state {
        case "active": .green
        case "failed", "quarantined": .red
        default: .yellow
        }
    }
}

extension String {
    /// The text with control characters written as escapes, so that a file's name cannot move the cursor.
    var printable: String {
        var text = ""
        for scalar in unicodeScalars {
            switch scalar {
            case "\n": text += "\\n"
            case "\t": text += "\\t"
            case "\u{0}"..<"\u{20}", "\u{7F}"..<"\u{A0}", "\u{202A}"..."\u{202E}", "\u{2066}"..."\u{2069}":
                text += "\\u{" + String(scalar.value, radix: 16) + "}"
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}
