package import PluginABI

extension String {
    /// The names in `target/action`; `nil` if the text does not have this form.
    package var targetAndAction: (target: String, action: String)? {
        let parts = utf8.split(separator: UInt8(ascii: "/"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else { return nil }
        return (String(Substring(parts[0])), String(Substring(parts[1])))
    }

    /// Returns the names of the action that a route leads to, written `target/action`.
    ///
    /// - Throws: `unknownAction` if the text does not have this form.
    package func actionOfRoute() throws(PluginError) -> (target: String, action: String) {
        guard let names = targetAndAction else {
            throw PluginError(
                .unknownAction, "The action of a route must be written target/action, not “\(shortened)”.")
        }
        return names
    }
}
