internal import PluginABI

/// Colours for terminals that have them.
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

    /// Returns the colour of a module's state.
    static func colour(ofState state: String) -> Colour {
        switch state {
        case "active": .green
        case "failed", "quarantined": .red
        default: .yellow
        }
    }
}

extension String {
    /// The text in a form that is safe for terminals: line feeds, tabs and the sequences of ``Style`` are kept, all
    /// other control characters are escaped. Names are already made printable when a line is composed; this is the
    /// second line of defence.
    var harmless: String {
        guard unicodeScalars.contains(where: \.isHarmful) else { return self }
        let parts = split(separator: "\u{1B}", omittingEmptySubsequences: false)
        return parts.dropFirst().reduce(Self.escaped(parts[0])) { text, part in
            // Only sequences that set colours are kept, such as `ESC [ 31 m`.
            let isStyle = part.prefixMatch(of: /\[[0-9]{0,2}m/) != nil
            return text + (isStyle ? "\u{1B}" : "\u{1B}".printable) + Self.escaped(part)
        }
    }

    private static func escaped(_ text: Substring) -> String {
        text.unicodeScalars.map { $0.isHarmful ? String($0).printable : String($0) }.joined()
    }
}

extension Unicode.Scalar {
    fileprivate var isHarmful: Bool { isTerminalControl && self != "\n" && self != "\t" }
}
