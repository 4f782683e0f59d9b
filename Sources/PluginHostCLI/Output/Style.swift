internal import PluginABI

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
    /// The text as a terminal may get it: lines and columns, the sequences of ``Style``, and every other control
    /// character as an escape. Names are made printable where a line is put together; this is what stands behind that.
    var harmless: String {
        guard unicodeScalars.contains(where: { $0.isTerminalControl && $0 != "\n" && $0 != "\t" }) else { return self }
        var text = ""
        var rest = unicodeScalars[...]
        while let scalar = rest.first {
            if scalar == "\u{1B}", let end = Self.endOfStyle(rest) {
                text.unicodeScalars.append(contentsOf: rest[..<end])
                rest = rest[end...]
                continue
            }
            rest.removeFirst()
            if scalar == "\n" || scalar == "\t" || !scalar.isTerminalControl {
                text.unicodeScalars.append(scalar)
            } else {
                text += String(scalar).printable
            }
        }
        return text
    }

    /// Where a sequence that sets colours, `ESC [ 31 m`, is over; nil for any other.
    private static func endOfStyle(_ text: Substring.UnicodeScalarView) -> String.Index? {
        var rest = text.dropFirst()
        guard rest.popFirst() == "[" else { return nil }
        for _ in 0..<3 {
            guard let scalar = rest.popFirst() else { return nil }
            if scalar == "m" { return rest.startIndex }
            guard ("0"..."9").contains(scalar) else { return nil }
        }
        return nil
    }
}
