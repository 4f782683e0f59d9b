internal import PluginABI
internal import PluginHost

/// Reads parameters of the form `name=value`. A value is read as JSON if it is valid JSON, otherwise as text.
///
/// - Throws: `usage`.
func namedValues(_ words: some Sequence<String>) throws(PluginError) -> [String: Value] {
    var values: [String: Value] = [:]
    for word in words {
        let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2, !parts[0].isEmpty else {
            throw .usage("'\(word.shortened)' is not a parameter; write it as 'name=value'.")
        }
        guard values[parts[0]] == nil else {
            throw .usage("The parameter '\(parts[0].shortened)' is given twice.")
        }
        values[parts[0]] = (try? Value(json: parts[1])) ?? .string(parts[1])
    }
    return values
}
