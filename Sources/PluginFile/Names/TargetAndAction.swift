package import PluginABI

extension String {
    /// The names in `target/action`; `nil` if the text does not have this form.
    package var targetAndAction: (target: String, action: String)? {
        let slash = UInt8(ascii: "/")
        guard let end = utf8.firstIndex(of: slash), end > startIndex else { return nil }
        let action = self[utf8.index(after: end)...]
        return action.isEmpty || action.utf8.contains(slash) ? nil : (String(self[..<end]), String(action))
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
