import PluginABI

extension RoutePattern {
    /// Builds a URL that the pattern matches, and from which it yields the same values.
    ///
    /// - Parameters:
    ///   - parameters: The values of the groups. Values without a group go to the query if `declared` contains their
    ///     names.
    ///   - declared: The parameters of the route's action.
    ///   - longest: How many bytes the URL may have.
    /// - Throws: `invalidURL` if the URL would be longer, or no URL can be built from the pattern; `missingParameter`
    ///   if a group has no value; `unknownParameter` if a value has neither a group nor a declared parameter;
    ///   `mistypedParameter` if a value cannot be part of a URL, or does not fit its group.
    func url(
        with parameters: [String: Value], declared: Set<String>, longest: Int = URLText.defaultLength
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
        for (name, value) in parameters where !value.isNull { values[name] = try Self.text(of: value, name) }
        let given = values
        let hostText = try host?.build(&values, encode: Self.encode) ?? ""
        var url = "\(scheme)://\(hostText)\(try path.build(&values, encode: Self.encode))"
        let query = values.sorted { $0.key < $1.key }
        if let leftOver = query.first(where: { !declared.contains($0.key) }) {
            throw PluginError(
                .unknownParameter,
                "The pattern “\(text.shortened)” has no group for the parameter “\(leftOver.key.shortened)”, and its "
                    + "action does not declare it.")
        }
        for (index, (name, value)) in query.enumerated() {
            url += (index == 0 ? "?" : "&") + Self.encode(name, false) + "=" + Self.encode(value, false)
        }
        try checkRoundTrip(url, given, Set(query.map(\.key)), longest)
        return url
    }

    /// Checks that the pattern yields the given values from the URL that was built from them.
    private func checkRoundTrip(
        _ url: String, _ given: [String: String], _ query: Set<String>, _ longest: Int
    ) throws(PluginError) {
        let taken = try URLText.read(url, longest: longest) { match($0)?.compactMapValues(\.self) }
        let expected = given.filter { !query.contains($0.key) }
        guard taken?.filter({ expected[$0.key] != nil }) == expected else {
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
            guard let opened = match(text)?.entry.takeUnretainedValue(), opened !== entry else { return }
            throw PluginError(
                .conflict,
                "The URL “\(url.shortened)” would open “\(opened.pattern.text.shortened)” of "
                    + "\(opened.owner.description), which takes precedence over “\(entry.pattern.text.shortened)”.")
        }
    }
}
