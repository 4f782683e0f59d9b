import PluginABI
import PluginFile

/// The parameters of a call by URL: those that the caller passes, then those of the path, then those of the query, then
/// the defaults of the route. If a name occurs more than once, only the first value is used, converted to the type that
/// the action declares. A query item that the action does not declare is dropped, unless the action has a rest.
struct URLArguments: ~Copyable {
    /// The endpoint of the call; `nil` if it is unknown, in which case everything is text. Endpoints are never freed,
    /// so it is not retained.
    private let endpoint: Unmanaged<Endpoint>?
    /// The parameters that the endpoint declares.
    private let parameters: UnsafeBufferPointer<Endpoint.Parameter>
    /// Whether parameters that the endpoint does not declare are passed on, because it has a rest or is unknown.
    private let takesOthers: Bool
    private let given: UnsafeBufferPointer<plugin_entry>
    /// The parameters that the caller passes, then one element for each parameter that the endpoint declares, then the
    /// others so far.
    private let entries: UnsafeMutableBufferPointer<plugin_entry>
    /// The number of declared parameters from the URL and the defaults.
    private var count = 0
    /// The number of other parameters from the URL and the defaults. A name may occur more than once among them.
    private var others = 0
    /// The number of query items that were dropped.
    private var dropped = 0
    /// The memory of lists and bytes that were made from text.
    private var owned: [UnsafeMutableRawPointer] = []

    private init(
        _ endpoint: Unmanaged<Endpoint>?, _ parameters: UnsafeBufferPointer<Endpoint.Parameter>, takesOthers: Bool,
        _ given: UnsafeBufferPointer<plugin_entry>, _ entries: UnsafeMutableBufferPointer<plugin_entry>
    ) {
        self.endpoint = endpoint
        self.parameters = parameters
        self.takesOthers = takesOthers
        self.given = given
        self.entries = entries
        if !given.isEmpty { _ = entries.update(fromContentsOf: given) }
        for position in parameters.indices { entries[given.count + position].value.kind = Endpoint.isMissing }
    }

    deinit { for memory in owned { memory.deallocate() } }

    private mutating func own(_ memory: UnsafeMutableRawPointer) { owned.append(memory) }

    /// Lends the parameters of a URL as the entries of a call.
    ///
    /// - Parameter body: Called with the entries and the number of query items that were dropped.
    /// - Throws: `mistypedParameter` for text that is not a value of the declared type, `unknownParameter` for a group
    ///   or a default that the action does not declare, and for a name that a URL cannot set.
    @inline(__always)
    static func lend<Result>(
        of resolution: URLResolution, to endpoint: Unmanaged<Endpoint>?,
        besides given: UnsafeBufferPointer<plugin_entry>, asksForObject: Bool,
        _ body: (UnsafeBufferPointer<plugin_entry>, _ dropped: Int) throws(PluginError) -> Result
    ) throws(PluginError) -> Result {
        let query = resolution.query
        let (parameters, asksAboutURL, takesOthers) =
            endpoint?._withUnsafeGuaranteedRef { ($0.parameters, $0.asksAboutURL, $0.hasRest) } ?? (
                .init(start: nil, count: 0), false, true
            )
        let (groups, defaults) =
            resolution.match.map { match in
                let (groups, hasDefaults) = match.destination._withUnsafeGuaranteedRef {
                    ($0.groups.count, $0.hasDefaults)
                }
                return (groups, hasDefaults ? match.entry._withUnsafeGuaranteedRef { $0.defaults.count } : 0)
            } ?? (0, 0)
        let found = groups + query.count + defaults + 3
        let room = given.count + (takesOthers ? parameters.count + found : max(found, parameters.count))
        return try withTemporaryMemory(of: plugin_entry.self, capacity: room) {
            (entries) throws(PluginError) in
            var arguments = URLArguments(endpoint, parameters, takesOthers: takesOthers, given, entries)
            if let match = resolution.match { try arguments.addGroups(match, resolution.segments) }
            // If several items have the same name, the last one is used.
            for index in query.indices.reversed() {
                try arguments.add(query[index], of: query[...index], near: groups + index)
            }
            let added =
                defaults == 0 && !asksAboutURL ? nil : try arguments.addDefaults(of: resolution, asksForObject)
            defer { withExtendedLifetime(added) {} }
            return try body(arguments.inOrder(), arguments.dropped)
        }
    }

    /// Returns the parameters of a route's closure: the given ones, and what the host says about the URL.
    static func ofClosure(
        _ resolution: URLResolution, _ named: [String: Value], asksForObject: Bool
    ) -> [String: Value] {
        var all = named
        all[ReservedName.pattern.rawValue] = resolution.route.map { .string($0.takeUnretainedValue().pattern.text) }
        all[ReservedName.url.rawValue] = .string(resolution.url.string)
        all[ReservedName.object.rawValue] = .bool(asksForObject)
        return all
    }

    /// Returns the parameters that the caller passes, followed by the declared ones of the URL in declared order, and
    /// by the others.
    @inline(__always)
    private func inOrder() -> UnsafeBufferPointer<plugin_entry> {
        var end = given.count + count
        if count < parameters.count {
            end = given.count
            for position in parameters.indices where !isMissing(position) {
                entries[end] = entries[given.count + position]
                end += 1
            }
        }
        for index in 0..<others {
            entries[end] = entries[given.count + parameters.count + index]
            end += 1
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
        guard let position = parameters.position(of: name, near: index) else { return try addOtherGroup(name, text) }
        try refuseReserved(name)
        guard isFree(position) else { return }
        let text = text.contains(RawText.escapedSlash) ? withoutMarks(text) : text
        put(try convert(text, parameters[position].kind, position), position)
    }

    /// Adds a group that the action does not declare. A group without a name is ignored if the action has no rest.
    @inline(never)
    private mutating func addOtherGroup(_ name: plugin_string, _ text: RawText) throws(PluginError) {
        if !takesOthers, isNumber(name) { return }
        try refuseReserved(name)
        let text = text.contains(RawText.escapedSlash) ? withoutMarks(text) : text
        try addOther(name, .text(text))
    }

    /// Adds a parameter that the action does not declare.
    private mutating func addOther(_ name: plugin_string, _ value: plugin_value) throws(PluginError) {
        guard takesOthers else { throw .unknownParameter(name.text, endpoint!.takeUnretainedValue()) }
        entries[given.count + parameters.count + others] = plugin_entry(key: name, value: value)
        others += 1
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
        guard let position = parameters.position(of: name, near: index) else {
            return try addOtherItem(name, item.value)
        }
        try refuseReserved(name)
        guard isFree(position) else { return }
        let kind = parameters[position].kind
        put(kind == .list ? list(of: item.name, in: query) : try convert(item.value, kind, position), position)
    }

    /// Adds a query item that the action does not declare to the rest, or drops it.
    @inline(never)
    private mutating func addOtherItem(_ name: plugin_string, _ value: RawText) throws(PluginError) {
        if takesOthers, !name.isReserved { try addOther(name, .text(value)) } else { dropped += 1 }
    }

    private mutating func list(of name: RawText, in query: Slice<UnsafeBufferPointer<URLText.Item>>) -> plugin_value {
        let items = query.filter { $0.name == name }
        let list = UnsafeMutablePointer<plugin_value>.allocate(capacity: items.count)
        own(list)
        for (index, item) in items.enumerated() { (list + index).initialize(to: .text(item.value)) }
        return plugin_value_list(list, UInt32(items.count))
    }

    /// Refuses a name under which the host provides something, because a URL cannot set that.
    @inline(__always)
    private func refuseReserved(_ name: plugin_string) throws(PluginError) {
        if name.isReserved { throw .reservedParameter(name.text) }
    }

    // MARK: Defaults and reserved parameters

    /// Adds the defaults of the route, and what the host says about the URL.
    ///
    /// - Returns: The owner of the values, which must outlive the call.
    @inline(never)
    private mutating func addDefaults(
        of resolution: URLResolution, _ asksForObject: Bool
    ) throws(PluginError) -> Parameters {
        let route = resolution.route?.takeUnretainedValue()
        var more = route?.defaults ?? [:]
        for reserved in ReservedName.allCases where parameters.contains(where: { $0.name == reserved.rawValue }) {
            switch reserved {
            case .url: more[reserved.rawValue] = .string(resolution.url.string)
            case .pattern: more[reserved.rawValue] = route.map { .string($0.pattern.text) } ?? .null
            case .object: more[reserved.rawValue] = .bool(asksForObject)
            case .event, .parameters: break
            }
        }
        let defaults = Parameters(more)
        for entry in try defaults.entries {
            if let position = parameters.position(of: entry.key, near: count) {
                if isFree(position) { put(entry.value, position) }
            } else {
                try addOther(entry.key, entry.value)
            }
        }
        return defaults
    }

    // MARK: Names and values

    /// Returns whether the parameter at a position has no value yet.
    @inline(__always)
    private func isFree(_ position: Int) -> Bool {
        isMissing(position) && (given.isEmpty || !Self.isGiven(parameters[position].key, position, given))
    }

    @inline(__always)
    private func isMissing(_ position: Int) -> Bool { entries[given.count + position].value.kind == Endpoint.isMissing }

    /// Returns whether the caller passes the parameter with a name and position. Static, because a call would otherwise
    /// copy the whole structure.
    @inline(never)
    private static func isGiven(
        _ key: plugin_string, _ position: Int, _ given: UnsafeBufferPointer<plugin_entry>
    ) -> Bool {
        var unnamed = 0
        for entry in given {
            if entry.key.count == 0 {
                if unnamed == position { return true }
                unnamed += 1
            } else if entry.key == key {
                return true
            }
        }
        return false
    }

    /// Stores the value of a declared parameter.
    @inline(__always)
    private mutating func put(_ value: plugin_value, _ position: Int) {
        entries[given.count + position] = plugin_entry(key: parameters[position].key, value: value)
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

extension plugin_value {
    /// Creates a string from text of a URL.
    @inline(__always)
    fileprivate static func text(_ text: RawText) -> plugin_value {
        let string = plugin_string(text)
        return plugin_value_string(string.bytes, UInt32(text.count))
    }
}
