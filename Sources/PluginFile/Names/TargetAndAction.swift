package import PluginABI

extension String {
    /// The names in `target/action`; nil for anything else.
    package var targetAndAction: (target: String, action: String)? {
        let parts = utf8.split(separator: UInt8(ascii: "/"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else { return nil }
        return (String(Substring(parts[0])), String(Substring(parts[1])))
    }

    /// The names of the action that a route leads to, written `target/action`.
    ///
    /// - Throws: `unknownAction` for anything else.
    package func actionOfRoute() throws(PluginError) -> (target: String, action: String) {
        guard let names = targetAndAction else {
            throw PluginError(
                .unknownAction, "A route leads to an action, written target/action, not “\(shortened)”.")
        }
        return names
    }
}
