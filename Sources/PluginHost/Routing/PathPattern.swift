import PluginABI

/// A pattern of one component of a URL, its path or its host, ready to match and to build.
struct PathPattern: Sendable {
    let text: String
    let parts: [PatternPart]
    let automaton: Automaton
    /// The names of the groups, in the order of what `match` returns.
    let names: [String]

    /// - Parameter delimiter: What separates segments: `/` in paths, `.` in hosts.
    /// - Throws: `invalidPattern`, with the position.
    init(
        _ text: String, at offset: Int = 0, of pattern: String? = nil, delimiter: UnicodeScalar = "/"
    ) throws(PluginError) {
        self.text = text
        let whole = pattern ?? text
        let parsed = try PatternParser.parse(
            text.unicodeScalars.map(\.value), at: offset, of: whole, delimiter: delimiter.value)
        var parts: [PatternPart] = []
        for var part in parsed {
            if case .literal(let scalars) = part.matcher { part.matcher = .literal(try Self.decode(scalars, whole)) }
            part.prefix = try Self.decode(part.prefix, whole)
            part.suffix = try Self.decode(part.suffix, whole)
            parts.append(part)
        }
        self.parts = parts
        automaton = try Automaton(parts, delimiter: delimiter.value, of: whole)
        names = parts.map(\.name).filter { !$0.isEmpty }
    }

    /// What is written with escapes in a pattern means the same as what is written without.
    private static func decode(_ scalars: [UInt32], _ pattern: String) throws(PluginError) -> [UInt32] {
        guard scalars.contains(0x25) else { return scalars }
        do throws(PluginError) {
            return try PathScalars.decode(Array(PathScalars.text(scalars).utf8), offset: 0, of: pattern)
        } catch {
            throw PluginError(.invalidPattern, "A pattern has an escape that is none. \(error.message)")
        }
    }

    /// What the groups take of a component; nil when it does not match. A group that took no part is nil.
    func match(_ component: [UInt32]) -> [String: String?]? {
        guard let taken = automaton.match(component[...]) else { return nil }
        var values: [String: String?] = [:]
        for (name, range) in zip(names, taken) {
            values.updateValue(range.map { PathScalars.text(component[$0]) }, forKey: name)
        }
        return values
    }

    /// Builds a component that the pattern matches, and that gives the same values back.
    ///
    /// - Parameters:
    ///   - values: By group; what is used is taken out.
    ///   - encode: Escapes what cannot stand in the component as it is.
    /// - Throws: `missingParameter` for a group without a value, `mistypedParameter` for a value it cannot take.
    func build(
        _ values: inout [String: String], encode: (_ text: String, _ keepsSlashes: Bool) -> String
    ) throws(PluginError) -> String {
        var built = ""
        for part in parts {
            let prefix = encode(PathScalars.text(part.prefix), true)
            let suffix = encode(PathScalars.text(part.suffix), true)
            if case .literal(let scalars) = part.matcher {
                if part.modifier == .once || part.modifier == .oneOrMore { built += Self.encode(scalars, encode) }
                continue
            }
            guard let value = values.removeValue(forKey: part.name) else {
                if part.modifier == .optional || part.modifier == .zeroOrMore { continue }
                if part.matcher == .anything { continue }
                throw PluginError(
                    .missingParameter, "The pattern “\(text)” needs a value for “\(part.name)” to build a URL.")
            }
            let isRepeated = part.modifier == .zeroOrMore || part.modifier == .oneOrMore
            built += prefix + encode(value, isRepeated || part.matcher == .anything) + suffix
        }
        return built
    }

    private static func encode(_ scalars: [UInt32], _ encode: (String, Bool) -> String) -> String {
        scalars.split(separator: PathScalars.escapedSeparator, omittingEmptySubsequences: false)
            .map { encode(PathScalars.text($0), true) }.joined(separator: "%2F")
    }
}
