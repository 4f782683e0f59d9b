import PluginABI
import PluginFile

/// The parameters of a call by URL: those that the caller passes, then those of the path, then those of the query, then
/// the defaults of the route. If a name occurs more than once, only the first value is used, converted to the type that
/// the action declares.
struct URLArguments: ~Copyable {
    /// The endpoint of the call; `nil` if it is unknown, in which case everything is text. Endpoints are never freed,
    /// so it is not retained.
    private let endpoint: Unmanaged<Endpoint>?
    /// The parameters that the endpoint declares.
    private let parameters: UnsafeBufferPointer<Endpoint.Parameter>
    private let given: UnsafeBufferPointer<plugin_entry>
    /// The parameters that the caller passes, then one element for each parameter that the endpoint declares or,
    /// without an endpoint, for each one found so far.
    private let entries: UnsafeMutableBufferPointer<plugin_entry>
    /// The number of entries from the URL and the defaults.
    private var count = 0
    /// The names that are already used, if there is no endpoint.
    private var names: Set<String>?
    /// The memory of lists and bytes that were made from text; `nil` if there are none, as is almost always the case.
    private var owned: [UnsafeMutableRawPointer]?

    /// The names that an action may declare to receive information about the URL.
    private enum Reserved: String, CaseIterable {
        /// The URL as it was given.
        case url = "_url"
        /// The pattern that matched, or null.
        case pattern = "_pattern"
        /// Whether the caller requests an object, with `object(for:)`.
        case object = "_object"
    }

    private init(
        _ endpoint: Unmanaged<Endpoint>?, _ parameters: UnsafeBufferPointer<Endpoint.Parameter>,
        _ given: UnsafeBufferPointer<plugin_entry>, _ entries: UnsafeMutableBufferPointer<plugin_entry>
    ) {
        self.endpoint = endpoint
        self.parameters = parameters
        self.given = given
        self.entries = entries
        _ = entries.update(fromContentsOf: given)
        for position in parameters.indices { entries[given.count + position].value.kind = Endpoint.isMissing }
        if endpoint == nil { names = Set(given.lazy.map(\.key.text)) }
    }

    deinit { if let owned { for memory in owned { memory.deallocate() } } }

    private mutating func own(_ memory: UnsafeMutableRawPointer) { owned = (owned ?? []) + [memory] }

    /// Lends the parameters of a URL as the entries of a call.
    ///
    /// - Throws: `mistypedParameter` for text that is not a value of the declared type, `unknownParameter` for a name
    ///   that the action does not declare.
    @inline(__always)
    static func lend<Result>(
        of resolution: URLResolution, to endpoint: Unmanaged<Endpoint>?,
        besides given: UnsafeBufferPointer<plugin_entry>, asksForObject: Bool,
        _ body: (UnsafeBufferPointer<plugin_entry>) throws(PluginError) -> Result
    ) throws(PluginError) -> Result {
        let query = resolution.query
        let (parameters, asksAboutURL) =
            endpoint?._withUnsafeGuaranteedRef { ($0.parameters, $0.asksAboutURL) } ?? (
                .init(start: nil, count: 0), false
            )
        let (groups, defaults) =
            resolution.match.map { match in
                let (groups, hasDefaults) = match.destination._withUnsafeGuaranteedRef {
                    ($0.groups.count, $0.hasDefaults)
                }
                return (groups, hasDefaults ? match.entry._withUnsafeGuaranteedRef { $0.defaults.count } : 0)
            } ?? (0, 0)
        let found = groups + query.count + defaults + 3
        let room = given.count + max(found, parameters.count)
        return try withUnsafeTemporaryAllocation(of: plugin_entry.self, capacity: room) {
            (entries) throws(PluginError) in
            var arguments = URLArguments(endpoint, parameters, given, entries)
            if let match = resolution.match { try arguments.addGroups(match, resolution.segments) }
            // If several items have the same name, the last one is used.
            for index in query.indices.reversed() {
                try arguments.add(query[index], of: query[...index], near: groups + index)
            }
            guard defaults == 0, !asksAboutURL else {
                return try arguments.lendWithDefaults(resolution, asksForObject, body)
            }
            return try body(arguments.inOrder())
        }
    }

    /// Returns the parameters that the caller passes, followed by all others in declared order.
    @inline(__always)
    private func inOrder() -> UnsafeBufferPointer<plugin_entry> {
        var end = given.count + count
        if endpoint != nil, count < parameters.count {
            end = given.count
            for position in parameters.indices where !isMissing(position) {
                entries[end] = entries[given.count + position]
                end += 1
            }
        }
        return UnsafeBufferPointer(rebasing: entries[..<end])
    }

    // MARK: The path

    @inline(__always)
    private mutating func addGroups(
        _ match: RouteMatch, _ segments: UnsafeBufferPointer<RawText>
    ) throws(PluginError) {
        let groups = match.destination._withUnsafeGuaranteedRef { $0.groups }
        if let taken = match.groups {
            assert(taken.count <= groups.count)
            for (index, text) in taken.enumerated() {
                if let text { try addGroup(groups[index].name, text, near: index) }
            }
        } else {
            for index in groups.indices {
                try addGroup(groups[index].name, segments[groups[index].segment], near: index)
            }
        }
    }

    @inline(__always)
    private mutating func addGroup(_ name: plugin_string, _ text: RawText, near index: Int) throws(PluginError) {
        // The text of a group without a name is only for actions that declare its number.
        if isNumber(name), endpoint == nil || parameters.position(of: name, near: 0) == nil { return }
        try refuseReserved(name)
        guard let position = try take(name, near: index) else { return }
        let text = text.contains(RawText.escapedSlash) ? withoutMarks(text) : text
        put(name, try convert(text, kind(at: position), position), position)
    }

    private func isNumber(_ name: plugin_string) -> Bool {
        guard let first = name.bytes else { return false }
        return (0x30...0x39).contains(first.pointee)
    }

    private mutating func withoutMarks(_ text: RawText) -> RawText {
        let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: text.count)
        own(UnsafeMutableRawPointer(copy.baseAddress!))
        for (index, byte) in text.enumerated() { copy[index] = byte == RawText.escapedSlash ? 0x2F : byte }
        return RawText(copy)
    }

    // MARK: The query

    @inline(__always)
    private mutating func add(
        _ item: URLText.Item, of query: Slice<UnsafeBufferPointer<URLText.Item>>, near index: Int
    ) throws(PluginError) {
        let name = plugin_string(item.name)
        try refuseReserved(name)
        guard let position = try take(name, near: index) else { return }
        let kind = kind(at: position)
        put(name, kind == .list ? list(of: item.name, in: query) : try convert(item.value, kind, position), position)
    }

    private mutating func list(of name: RawText, in query: Slice<UnsafeBufferPointer<URLText.Item>>) -> plugin_value {
        let items = query.filter { $0.name == name }
        let list = UnsafeMutablePointer<plugin_value>.allocate(capacity: items.count)
        own(list)
        for (index, item) in items.enumerated() { (list + index).initialize(to: .text(item.value)) }
        return plugin_value_list(list, UInt32(items.count))
    }

    /// Refuses a name under which the host provides information about a URL, because a URL cannot set that.
    @inline(__always)
    private func refuseReserved(_ name: plugin_string) throws(PluginError) {
        guard name.count > 0, name.bytes.pointee == UInt8(ascii: "_") else { return }
        guard Reserved(rawValue: name.text) == nil else { throw .reservedParameter(name.text) }
    }

    // MARK: Defaults and reserved parameters

    private mutating func lendWithDefaults<Result>(
        _ resolution: URLResolution, _ asksForObject: Bool,
        _ body: (UnsafeBufferPointer<plugin_entry>) throws(PluginError) -> Result
    ) throws(PluginError) -> Result {
        let route = resolution.route?.takeUnretainedValue()
        var more = route?.defaults ?? [:]
        for reserved in Reserved.allCases where parameters.contains(where: { $0.name == reserved.rawValue }) {
            more[reserved.rawValue] =
                switch reserved {
                case .url: .string(resolution.url.string)
                case .pattern: route.map { .string($0.pattern.text) } ?? .null
                case .object: .bool(asksForObject)
                }
        }
        return try Parameters(more).withEntries { (defaults, number) throws(PluginError) in
            for index in 0..<number {
                if let position = try take(defaults[index].key, near: count) {
                    put(defaults[index].key, defaults[index].value, position)
                }
            }
            return try body(inOrder())
        }
    }

    // MARK: Names and values

    /// Returns the position for a name that is not used yet; `nil` if it is used.
    ///
    /// - Parameter index: The position of the name in the URL: most URLs have the parameters in declared order.
    @inline(__always)
    private mutating func take(_ name: plugin_string, near index: Int) throws(PluginError) -> Int? {
        guard let endpoint else { return names!.insert(name.text).inserted ? count : nil }
        guard let position = parameters.position(of: name, near: index) else {
            throw .unknownParameter(name.text, endpoint.takeUnretainedValue())
        }
        guard isMissing(position) else { return nil }
        return given.isEmpty || !isGiven(position) ? position : nil
    }

    /// Returns the declared type of the parameter at a position.
    private func kind(at position: Int) -> Value.Kind { endpoint == nil ? .any : parameters[position].kind }

    private func isMissing(_ position: Int) -> Bool { entries[given.count + position].value.kind == Endpoint.isMissing }

    private func isGiven(_ position: Int) -> Bool {
        var unnamed = 0
        for entry in given {
            if entry.key.count == 0 {
                if unnamed == position { return true }
                unnamed += 1
            } else if entry.key == parameters[position].key {
                return true
            }
        }
        return false
    }

    /// Stores a value under the declared name, or, without an endpoint, under the name in the URL.
    @inline(__always)
    private mutating func put(_ name: plugin_string, _ value: plugin_value, _ position: Int) {
        let key = endpoint == nil ? name : parameters[position].key
        entries[given.count + position] = plugin_entry(key: key, value: value)
        count += 1
    }

    @inline(__always)
    private mutating func convert(
        _ text: RawText, _ kind: Value.Kind, _ position: Int
    ) throws(PluginError) -> plugin_value {
        if kind == .string || kind == .any { return .text(text) }
        return try convertSlow(text, kind, position)
    }

    @inline(never)
    private mutating func convertSlow(
        _ text: RawText, _ kind: Value.Kind, _ position: Int
    ) throws(PluginError) -> plugin_value {
        switch kind {
        case .int: if let number = text.integer { return plugin_value_int(number) }
        case .double: if let number = text.number { return plugin_value_double(number) }
        case .bool: if let flag = text.flag { return plugin_value_bool(flag ? 1 : 0) }
        case .bytes: if let bytes = decodeBytes(text) { return bytes }
        case .list:
            let list = UnsafeMutablePointer<plugin_value>.allocate(capacity: 1)
            own(list)
            list.initialize(to: .text(text))
            return plugin_value_list(list, 1)
        case .string, .any, .map, .object, .null: break
        }
        throw PluginError(
            .mistypedParameter,
            "The parameter “\(parameters[position].name.shortened)” is declared \(kind); the URL has "
                + "“\(text.string.shortened)”.")
    }

    private mutating func decodeBytes(_ text: RawText) -> plugin_value? {
        guard let bytes = Bytes(base64: text.string) else { return nil }
        let copy = UnsafeMutablePointer<UInt8>.allocate(capacity: max(1, bytes.count))
        own(copy)
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
            .unknownParameter,
            "The parameter “\(name.shortened)” is set by the host; a URL cannot set it.")
    }
}

extension plugin_value {
    /// Creates a string from text of a URL.
    @inline(__always)
    fileprivate static func text(_ text: RawText) -> plugin_value {
        let string = plugin_string(text)
        return plugin_value_string(string.bytes, UInt32(text.count))
    }
}
