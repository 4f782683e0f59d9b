extension String {
    /// The names in `target/action`; nil for anything else.
    package var targetAndAction: (target: String, action: String)? {
        withRawText { text in
            guard let slash = text.firstIndex(of: UInt8(ascii: "/")) else { return nil }
            let (target, action) = (text.part(0, slash), text.part(slash + 1, text.count))
            guard !target.isEmpty, !action.isEmpty, !action.contains(UInt8(ascii: "/")) else { return nil }
            return (target.string, action.string)
        }
    }
}
