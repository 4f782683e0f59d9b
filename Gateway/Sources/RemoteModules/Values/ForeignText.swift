import PluginABI

/// Makes text that the other host, or a balancer, has sent fit for messages: of limited length, and without what a
/// terminal would interpret.
enum ForeignText {
    /// Returns the beginning of a text in one line, without HTML tags.
    static func excerpt(_ bytes: some Collection<UInt8>, limit: Int = 160) -> String {
        var text = ""
        var isTag = false
        for scalar in String(decoding: bytes.prefix(4096), as: UTF8.self).unicodeScalars {
            switch scalar {
            case "<": isTag = true
            case ">" where isTag:
                isTag = false
                text += " "
            case _ where isTag: break
            case _ where scalar.isShown: text.unicodeScalars.append(scalar)
            default: text += " "
            }
        }
        let words = text.split(separator: " ").joined(separator: " ")
        return words.count > limit ? words.prefix(limit) + "…" : words
    }

    /// Returns a message of an error, possibly with several lines.
    static func message(_ text: String) -> String {
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars.prefix(4096) {
            result.append(scalar.isShown || scalar == "\n" ? scalar : " ")
        }
        return String(result)
    }

    /// Whether a text can be the name of a target, an action, a module or a code.
    static func isName(_ text: String, atMost limit: Int = 256) -> Bool {
        guard (1...limit).contains(text.utf8.count), let first = text.utf8.first else { return false }
        func isLetter(_ byte: UInt8) -> Bool { (65...90).contains(byte) || (97...122).contains(byte) || byte == 95 }
        return isLetter(first)
            && text.utf8.allSatisfy { isLetter($0) || (48...57).contains($0) || $0 == 45 || $0 == 46 }
    }
}

extension Unicode.Scalar {
    /// Whether the character can be shown to people as it is.
    fileprivate var isShown: Bool {
        switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: false
        default: true
        }
    }
}
