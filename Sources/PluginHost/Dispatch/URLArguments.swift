import CPluginABI
import PluginABI

/// The parameters of a call that a URL makes: what the caller has given itself, then what stands in the path, then in
/// the query, then the defaults of the route. Of equal names only the first one is taken in, converted to the type that
/// the action declares.
struct URLArguments: ~Copyable {
    /// What is to be called; nil where that is not known, and everything is text.
    private let endpoint: Endpoint?
    private let given: UnsafeBufferPointer<plugin_entry>
    /// What the caller has given; then a place for each parameter that the endpoint declares, or what was found so far.
    private let entries: UnsafeMutableBufferPointer<plugin_entry>
    /// How many entries the URL and the defaults have made.
    private var count = 0
    /// Where there is no endpoint: the names that are taken.
    private var names: Set<String> = []
    /// Lists and bytes that were made of text.
    private var owned: [UnsafeMutableRawPointer] = []

    /// Names that an action may declare to be told about the URL.
    private enum Reserved: String, CaseIterable {
        /// The URL as it was given.
        case url = "_url"
        /// The pattern that matched, or nothing.
        case pattern = "_pattern"
        /// Whether the caller asks for an object, with `object(for:)`.
        case object = "_object"
    }

    private init(
        _ endpoint: Endpoint?, _ given: UnsafeBufferPointer<plugin_entry>,
        _ entries: UnsafeMutableBufferPointer<plugin_entry>
    ) {
        self.endpoint = endpoint
        self.given = given
        self.entries = entries
        _ = entries.update(fromContentsOf: given)
        if let endpoint {
            for place in endpoint.parameters.indices { entries[given.count + place].value.kind = Endpoint.isMissing }
        } else {
            names = Set(given.lazy.map(\.key.text))
        }
    }

    deinit { for memory in owned { memory.deallocate() } }

    /// Lends the parameters of a URL as a call takes them.
    ///
    /// - Throws: `mistypedParameter` for text that is no value of the declared type, `unknownParameter` for a name that
    ///   the action does not declare.
    @inline(__always)
    static func lend<Result>(
        of resolution: URLResolution, to endpoint: Endpoint?, besides given: UnsafeBufferPointer<plugin_entry>,
        asksForObject: Bool, _ body: (UnsafeBufferPointer<plugin_entry>) throws(PluginError) -> Result
    ) throws(PluginError) -> Result {
        let query = resolution.url.query
        let (groups, defaults) =
            resolution.route?._withUnsafeGuaranteedRef {
                ($0.destination.groups.count, $0.hasDefaults ? $0.defaults.count : 0)
            } ?? (0, 0)
        let found = groups + query.count + defaults + 3
        let room = given.count + max(found, endpoint?.parameters.count ?? 0)
        return try withUnsafeTemporaryAllocation(of: plugin_entry.self, capacity: room) {
            (entries) throws(PluginError) in
            var arguments = URLArguments(endpoint, given, entries)
            if let match = resolution.match { try arguments.addGroups(match, resolution.url) }
            // Of items with one name the last one counts.
            for index in query.indices.reversed() { try arguments.add(query[index], at: index, of: query) }
            guard defaults == 0, endpoint?.asksAboutURL != true else {
                return try arguments.lendWithDefaults(resolution, asksForObject, body)
            }
            return try body(arguments.inOrder())
        }
    }

    /// What the caller has given, and behind it all else in declared order.
    @inline(__always)
    private func inOrder() -> UnsafeBufferPointer<plugin_entry> {
        var end = given.count + count
        if let endpoint, count < endpoint.parameters.count {
            end = given.count
            for place in endpoint.parameters.indices where !isMissing(place) {
                entries[end] = entries[given.count + place]
                end += 1
            }
        }
        return UnsafeBufferPointer(rebasing: entries[..<end])
    }

    // MARK: The path

    @inline(__always)
    private mutating func addGroups(_ match: RouteMatch, _ url: URLText) throws(PluginError) {
        let groups = match.entry._withUnsafeGuaranteedRef { $0.destination.groups }
        if let taken = match.groups {
            for (group, text) in zip(groups, taken) { if let text { try addGroup(group.name, text) } }
        } else {
            for group in groups { try addGroup(group.name, url.segments[group.place]) }
        }
    }

    @inline(__always)
    private mutating func addGroup(_ name: plugin_string, _ text: RawText) throws(PluginError) {
        // What a group without a name takes is for those who ask for it.
        if isNumber(name), endpoint?.place(of: name, near: 0) == nil { return }
        try refuseReserved(name)
        guard let (place, parameter) = try take(name) else { return }
        let text = text.contains(RawText.escapedSlash) ? withoutMarks(text) : text
        put(name, try convert(text, parameter), place)
    }

    private func isNumber(_ name: plugin_string) -> Bool {
        guard let first = name.bytes else { return false }
        return (0x30...0x39).contains(first.pointee)
    }

    private mutating func withoutMarks(_ text: RawText) -> RawText {
        let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: text.count)
        owned.append(UnsafeMutableRawPointer(copy.baseAddress!))
        for (index, byte) in text.enumerated() { copy[index] = byte == RawText.escapedSlash ? 0x2F : byte }
        return RawText(copy)
    }

    // MARK: The query

    @inline(__always)
    private mutating func add(
        _ item: URLText.Item, at index: Int, of query: UnsafeBufferPointer<URLText.Item>
    ) throws(PluginError) {
        try refuseReserved(plugin_string(item.name))
        guard let (place, parameter) = try take(plugin_string(item.name)) else { return }
        let value =
            parameter?.kind == .list ? list(of: item.name, in: query[...index]) : try convert(item.value, parameter)
        put(plugin_string(item.name), value, place)
    }

    private mutating func list(of name: RawText, in query: Slice<UnsafeBufferPointer<URLText.Item>>) -> plugin_value {
        let items = query.filter { $0.name == name }
        let list = UnsafeMutablePointer<plugin_value>.allocate(capacity: items.count)
        owned.append(UnsafeMutableRawPointer(list))
        for (index, item) in items.enumerated() { (list + index).initialize(to: .text(item.value)) }
        return plugin_value_list(list, UInt32(items.count))
    }

    /// What the host tells about a URL, the URL cannot tell itself.
    @inline(__always)
    private func refuseReserved(_ name: plugin_string) throws(PluginError) {
        guard name.count > 0, name.bytes.pointee == UInt8(ascii: "_") else { return }
        guard Reserved(rawValue: name.text) == nil else { throw .reservedParameter(name.text) }
    }

    // MARK: What the URL does not say

    private mutating func lendWithDefaults<Result>(
        _ resolution: URLResolution, _ asksForObject: Bool,
        _ body: (UnsafeBufferPointer<plugin_entry>) throws(PluginError) -> Result
    ) throws(PluginError) -> Result {
        let route = resolution.route?.takeUnretainedValue()
        var more = route?.defaults ?? [:]
        for reserved in Reserved.allCases where endpoint?.declares(reserved.rawValue) == true {
            more[reserved.rawValue] =
                switch reserved {
                case .url: .string(resolution.url.text)
                case .pattern: route.map { .string($0.pattern.text) } ?? .null
                case .object: .bool(asksForObject)
                }
        }
        return try Parameters(more).withEntries { (defaults, number) throws(PluginError) in
            for index in 0..<number {
                if let (place, _) = try take(defaults[index].key) {
                    put(defaults[index].key, defaults[index].value, place)
                }
            }
            return try body(inOrder())
        }
    }

    // MARK: Names and values

    /// The place of a name that is not taken yet, and what is declared there; nil where it is taken.
    @inline(__always)
    private mutating func take(
        _ name: plugin_string
    ) throws(PluginError) -> (place: Int, parameter: Endpoint.Parameter?)? {
        guard let endpoint else { return names.insert(name.text).inserted ? (count, nil) : nil }
        guard let place = endpoint.place(of: name, near: count) else { throw .unknownParameter(name.text, endpoint) }
        guard isMissing(place) else { return nil }
        let parameter = endpoint.parameters[place]
        return given.isEmpty || !isGiven(parameter, place) ? (place, parameter) : nil
    }

    private func isMissing(_ place: Int) -> Bool { entries[given.count + place].value.kind == Endpoint.isMissing }

    private func isGiven(_ parameter: Endpoint.Parameter, _ place: Int) -> Bool {
        var position = 0
        for entry in given {
            if entry.key.count == 0 {
                if position == place { return true }
                position += 1
            } else if entry.key == parameter.key {
                return true
            }
        }
        return false
    }

    /// Enters a value under the declared name, or the one that it was given by.
    @inline(__always)
    private mutating func put(_ name: plugin_string, _ value: plugin_value, _ place: Int) {
        entries[given.count + place] = plugin_entry(key: endpoint?.parameters[place].key ?? name, value: value)
        count += 1
    }

    @inline(__always)
    private mutating func convert(
        _ text: RawText, _ parameter: Endpoint.Parameter?
    ) throws(PluginError) -> plugin_value {
        switch parameter?.kind ?? .any {
        case .string, .any: return .text(text)
        case .int: if let number = text.integer { return plugin_value_int(number) }
        case .double: if let number = text.number { return plugin_value_double(number) }
        case .bool: if let flag = text.flag { return plugin_value_bool(flag ? 1 : 0) }
        case .bytes: if let bytes = decodeBytes(text) { return bytes }
        case .list:
            let list = UnsafeMutablePointer<plugin_value>.allocate(capacity: 1)
            owned.append(UnsafeMutableRawPointer(list))
            list.initialize(to: .text(text))
            return plugin_value_list(list, 1)
        case .map, .object, .null: break
        }
        throw PluginError(
            .mistypedParameter,
            "The parameter “\(parameter!.name.shortened)” is declared \(parameter!.kind); the URL has "
                + "“\(text.string.shortened)”.")
    }

    private mutating func decodeBytes(_ text: RawText) -> plugin_value? {
        guard let bytes = Bytes(base64: text.string) else { return nil }
        let copy = UnsafeMutablePointer<UInt8>.allocate(capacity: max(1, bytes.count))
        owned.append(UnsafeMutableRawPointer(copy))
        bytes.withUnsafeBytes { source in
            if let start = source.baseAddress {
                UnsafeMutableRawPointer(copy).copyMemory(from: start, byteCount: source.count)
            }
        }
        return plugin_value_bytes(copy, UInt32(bytes.count))
    }
}

extension PluginError {
    fileprivate static func reservedParameter(_ name: String) -> PluginError {
        PluginError(
            .unknownParameter, "The parameter “\(name)” is what the host tells about a URL; a URL cannot give it.")
    }
}

extension Endpoint {
    fileprivate func declares(_ name: String) -> Bool { parameters.contains { $0.name == name } }

    /// Whether it declares a reserved name.
    fileprivate var asksAboutURL: Bool {
        parameters.contains { $0.key.count > 3 && $0.key.bytes!.pointee == 0x5F }
    }
}

extension plugin_value {
    /// Text of a URL.
    @inline(__always)
    fileprivate static func text(_ text: RawText) -> plugin_value {
        let string = plugin_string(text)
        return plugin_value_string(string.bytes, UInt32(text.count))
    }
}
