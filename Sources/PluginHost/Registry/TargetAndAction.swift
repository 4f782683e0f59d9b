extension String {
    /// The names in `target/action`; nil for anything else.
    package var targetAndAction: (target: String, action: String)? {
        guard let slash = utf8.firstIndex(of: UInt8(ascii: "/")), slash > startIndex else { return nil }
        let action = self[utf8.index(after: slash)...]
        guard !action.isEmpty, !action.utf8.contains(UInt8(ascii: "/")) else { return nil }
        return (String(self[..<slash]), String(action))
    }
}
