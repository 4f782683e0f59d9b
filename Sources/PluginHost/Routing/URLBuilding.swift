import PluginABI

extension RoutePattern {
    /// Builds a URL that the pattern matches, and from which it yields the same values.
    ///
    /// - Parameters:
    ///   - parameters: The values of the groups. Values without a group go to the query if `declared` contains their
    ///     names.
    ///   - declared: The parameters of the route's action, and their types.
    ///   - longest: How many bytes the URL may have.
    /// - Throws: `invalidURL` if the URL would be longer, or no URL can be built from the pattern; `missingParameter`
    ///   if a group has no value; `unknownParameter` if a value has neither a group nor a declared parameter, or if
    ///   only the host can set it; `mistypedParameter` if a value cannot be part of a URL, or does not fit its group.
    func url(
        with parameters: [String: Value], declared: [String: Value.Kind], longest: Int = URLText.defaultLength
    ) throws(PluginError) -> String {
        guard let scheme else {
            throw PluginError(
                .invalidURL,
                "The pattern “\(text.shortened)” matches any scheme, so no URL can be built from it.")
        }
        guard let path else {
            throw PluginError(
                .invalidURL, "The pattern “\(text.shortened)” is a fallback, so no URL can be built from it.")
        }
        var values: [String: String] = [:]
        var lists: [String: [String]] = [:]
        for (name, value) in parameters where !value.isNull {
            guard ReservedName(rawValue: name) == nil else { throw .reservedParameter(name) }
            guard case .list(let items) = value else {
                values[name] = try Self.text(of: value, name)
                continue
            }
            let isGroup = names.contains(name)
            let texts = try Self.texts(of: items, name, declared[name], atMost: isGroup ? 1 : .max)
            if isGroup { values[name] = texts[0] } else { lists[name] = texts }
        }
        let given = values
        let hostText = try host?.build(&values, encode: Self.encode) ?? ""
        var url = "\(scheme)://\(hostText)\(try path.build(&values, encode: Self.encode))"
        let groups = given.filter { values[$0.key] == nil }
        for (name, value) in values { lists[name] = [value] }
        let query = lists.sorted { $0.key < $1.key }.flatMap { name, texts in texts.map { (name, $0) } }
        if let leftOver = lists.keys.sorted().first(where: { declared[$0] == nil }) {
            throw PluginError(
                .unknownParameter,
                "The pattern “\(text.shortened)” has no group for the parameter “\(leftOver.shortened)”, and its "
                    + "action does not declare it.")
        }
        for (name, value) in given.sorted(by: { $0.key < $1.key }) {
            guard let kind = declared[name], kind != .list else { continue }
            guard value.withRawText({ $0.value(of: kind) }) != nil else {
                throw PluginError(
                    .mistypedParameter,
                    "The parameter “\(name.shortened)” is “\(value.shortened)”; its action expects \(kind).")
            }
        }
        for (index, (name, value)) in query.enumerated() {
            url += (index == 0 ? "?" : "&") + Self.encode(name, false) + "=" + Self.encode(value, false)
        }
        try checkRoundTrip(url, groups, longest)
        return url
    }

    /// Checks that the pattern yields the values of its groups from the URL that was built from them.
    private func checkRoundTrip(
        _ url: String, _ groups: [String: String], _ longest: Int
    ) throws(PluginError) {
        let taken = try URLText.read(url, longest: longest) { match($0)?.compactMapValues(\.self) }
        guard taken?.filter({ groups[$0.key] != nil }) == groups else {
            throw PluginError(
                .mistypedParameter,
                "A value does not fit its group in “\(text.shortened)”: opening “\(url.shortened)” would change it.")
        }
    }

    private static func text(of value: Value, _ name: String) throws(PluginError) -> String {
        switch value {
        case .string(let text): text
        case .int(let number): String(number)
        case .double(let number): String(number)
        case .bool(let flag): String(flag)
        case .bytes(let bytes): bytes.base64
        case .null, .list, .map, .object:
            throw PluginError(
                .mistypedParameter,
                "The parameter “\(name.shortened)” is a value of type \(value.kind), which a URL cannot carry.")
        }
    }

    /// Returns the strings of a list: for the query, each becomes an item; for a group, the only one becomes its value.
    ///
    /// - Throws: `mistypedParameter` if opening the URL would not yield the same list.
    private static func texts(
        of items: [Value], _ name: String, _ kind: Value.Kind?, atMost most: Int
    ) throws(PluginError) -> [String] {
        let texts = items.compactMap(\.string)
        guard kind == nil || kind == .list, texts.count == items.count, (1...most).contains(texts.count) else {
            throw PluginError(
                .mistypedParameter,
                "The parameter “\(name.shortened)” is a list, which a URL can only carry if the action declares the "
                    + "parameter as a list, and it consists of \(most == 1 ? "one string" : "strings, at least one").")
        }
        return texts
    }

    /// Escapes all characters except those that need no escaping anywhere in a URL (RFC 3986, "unreserved").
    private static func encode(_ text: String, _ keepsSlashes: Bool) -> String {
        var encoded = ""
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E:
                encoded.unicodeScalars.append(UnicodeScalar(byte))
            case 0x2F where keepsSlashes: encoded += "/"
            default:
                let digits = String(byte, radix: 16, uppercase: true)
                encoded += digits.count == 1 ? "%0" + digits : "%" + digits
            }
        }
        return encoded
    }
}

extension RouteTable {
    /// Checks that a URL that was built for a route opens that route.
    ///
    /// - Throws: `conflict` if it opens another route.
    func checkOpens(_ entry: RouteEntry, _ url: String, longest: Int) throws(PluginError) {
        try URLText.read(url, longest: longest) { (text) throws(PluginError) in
            let found = match(text, entry.pattern.method ?? .get)
            guard let opened = found?.entry.takeUnretainedValue(), opened !== entry else { return }
            throw PluginError(
                .conflict,
                "The URL “\(url.shortened)” would open “\(opened.pattern.text.shortened)” of "
                    + "\(opened.owner.description.shortened), which takes precedence over “\(entry.pattern.text.shortened)”."
            )
        }
    }
}
