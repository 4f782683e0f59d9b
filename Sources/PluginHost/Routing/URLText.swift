import PluginABI

/// A parsed URL, each piece of which is decoded once. Pieces without escapes are not copied, but point into the URL
/// itself.
///
/// URLs are not parsed with Foundation, since `URL` escapes the whole string again if it contains one stray `%`, and
/// treats text after a colon as a port.
struct URLText {
    /// The URL as it was given.
    let bytes: RawText
    /// The scheme in lower case; that of the program if the URL is written without one.
    private(set) var scheme: RawText?
    /// The host in lower case, with its port unless that is the default of the scheme. It may be empty.
    private(set) var host: RawText?
    /// The decoded host as it was written.
    private(set) var writtenHost = RawText(start: nil, count: 0)
    /// The decoded path without `.` and `..`. Escaped slashes are marked.
    private(set) var path = RawText(start: nil, count: 0)
    /// The segments between the slashes of the path.
    private(set) var segments = UnsafeBufferPointer<RawText>(start: nil, count: 0)

    // The query that ``readQuery()`` parses, the memory for its items, and whether the URL contains escapes.
    private var rawQuery = RawText(start: nil, count: 0)
    private let items: UnsafeMutablePointer<Item>
    private let isEscaped: Bool
    private var decoder: URLDecoder

    struct Item {
        let name: RawText
        let value: RawText
    }

    /// The items of a query, in order.
    typealias Query = UnsafeBufferPointer<Item>

    /// The default length limit of URLs in bytes.
    static let defaultLength = 16_384
    /// The length limits that can be set. A search uses more memory with a higher limit, up to 64 MiB for the largest
    /// expressions.
    static let lengths = 256...262_144
    /// The default ports of schemes (WHATWG URL, "special scheme").
    static let defaultPorts = ["http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"]

    /// Parses a URL except for its query, and lends the pieces to `body`.
    ///
    /// - Parameters:
    ///   - longest: How many bytes the URL may have.
    ///   - scheme: The scheme of a URL that is written without one, in lower case; `nil` if that is an error.
    /// - Throws: `invalidURL`, with the position of the error; the error of `body`.
    @inline(__always)
    static func readPath<Result>(
        _ bytes: RawText, longest: Int, scheme: @autoclosure () -> String?,
        _ body: (URLText) throws(PluginError) -> Result
    ) throws(PluginError) -> Result {
        let outline = try URLOutline(bytes, longest: longest)
        var added: String?
        if outline.schemeEnd == 0 {
            added = scheme()
            if added == nil { throw .hasNoScheme(bytes) }
        }
        let words = (outline.memory + (added?.utf8.count ?? 0) + 7) / 8
        return try withTemporaryMemory(of: UInt64.self, capacity: words) { (memory) throws(PluginError) in
            try body(try URLText(bytes, outline, UnsafeMutableRawBufferPointer(memory), added))
        }
    }

    /// Parses a URL, and lends the pieces, apart from the items of its query, to `body`.
    ///
    /// - Parameters:
    ///   - longest: How many bytes the URL may have.
    ///   - scheme: The scheme of a URL that is written without one, in lower case; `nil` if that is an error.
    /// - Throws: `invalidURL`, with the position of the error; the error of `body`.
    static func read<Result>(
        _ text: String, longest: Int = defaultLength, scheme: String? = nil,
        _ body: (URLText) throws(PluginError) -> Result
    ) throws(PluginError) -> Result {
        try text.withRawText { (bytes) throws(PluginError) in
            try readPath(bytes, longest: longest, scheme: scheme) { (url) throws(PluginError) in
                _ = try url.readQuery()
                return try body(url)
            }
        }
    }

    @inline(__always)
    private init(
        _ bytes: RawText, _ outline: URLOutline, _ memory: UnsafeMutableRawBufferPointer, _ added: String?
    ) throws(PluginError) {
        self.bytes = bytes
        isEscaped = outline.isEscaped
        let segments = memory.baseAddress!.bindMemory(to: RawText.self, capacity: outline.slashes + 1)
        items = UnsafeMutableRawPointer(segments + outline.slashes + 1)
            .bindMemory(to: Item.self, capacity: outline.items)
        let text = UnsafeMutableRawPointer(items + outline.items).assumingMemoryBound(to: UInt8.self)
        decoder = URLDecoder(url: bytes, text: text)

        if let added {
            scheme = decoder.copy(added)
        } else {
            scheme = decoder.lowerCase(bytes.part(0, outline.schemeEnd))
        }
        try takeHost(bytes.part(outline.hostStart, outline.pathStart))
        rawQuery = bytes.part(outline.queryStart, outline.end)
        path = bytes.part(outline.pathStart, outline.pathEnd)
        if outline.isEscaped { path = try decoder.decode(path, as: .path) }
        self.segments = Self.split(path, into: segments)
        if outline.mayHaveDots,
            let count = dropDots(
                .init(start: segments, count: self.segments.count), insteadOf: RawText(start: nil, count: 0))
        {
            path = decoder.join(UnsafeBufferPointer(start: segments, count: count))
            self.segments = Self.split(path, into: segments)
        }
    }

    /// A copy of the URL as a string.
    var text: String { bytes.string }

    private mutating func takeHost(_ authority: RawText) throws(PluginError) {
        writtenHost = isEscaped ? try decoder.decode(authority, as: .host) : authority
        var host = decoder.lowerCase(writtenHost)
        if let colon = host.lastIndex(of: UInt8(ascii: ":")),
            let scheme, let port = Self.defaultPorts[scheme.string], host[(colon + 1)...].elementsEqual(port.utf8)
        {
            host = host.part(0, colon)
        }
        self.host = host
    }

    // MARK: The path

    @inline(__always)
    private static func split(
        _ path: RawText, into segments: UnsafeMutablePointer<RawText>
    ) -> UnsafeBufferPointer<RawText> {
        var (count, start) = (0, 0)
        for index in 0..<path.count where path[index] == UInt8(ascii: "/") {
            segments[count] = path.part(start, index)
            count &+= 1
            start = index &+ 1
        }
        segments[count] = path.part(start, path.count)
        return UnsafeBufferPointer(start: segments, count: count + 1)
    }

    // MARK: The query

    /// Parses the query. A call parses the query last, while the data that the path leads to is being fetched from
    /// memory.
    ///
    /// - Throws: `invalidURL`, with the position of the error.
    @inline(__always)
    func readQuery() throws(PluginError) -> Query {
        let query = rawQuery
        var decoder = decoder
        var (count, start) = (0, 0)
        while start < query.count {
            var equals = -1
            var end = start
            while end < query.count, query[end] != UInt8(ascii: "&") {
                if query[end] == UInt8(ascii: "="), equals < 0 { equals = end }
                end &+= 1
            }
            if end > start {
                var name = query.part(start, equals < 0 ? end : equals)
                var value = equals < 0 ? query.part(end, end) : query.part(equals + 1, end)
                if isEscaped {
                    name = try decoder.decode(name, as: .query)
                    value = try decoder.decode(value, as: .query)
                }
                guard !name.isEmpty else { throw decoder.hasNoName(query.part(start, end)) }
                items[count] = Item(name: name, value: value)
                count += 1
            }
            start = end + 1
        }
        return Query(start: items, count: count)
    }
}
