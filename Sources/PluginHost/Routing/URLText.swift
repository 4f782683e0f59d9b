import Glibc
import PluginABI

/// A URL taken apart, each piece decoded once. What is written without escapes is not copied: the pieces point into the
/// URL as it was given.
///
/// Parsed here and not with Foundation: `URL` escapes the whole string again when it finds one stray `%`, and takes what
/// stands behind a colon for a port.
struct URLText {
    /// The URL as it was given.
    let bytes: RawText
    /// In lower case; nil for a URL without one.
    private(set) var scheme: RawText?
    /// In lower case, with its port if that is not the one that the scheme has anyway; nil for a URL without one.
    private(set) var host: RawText?
    /// The host as it is written, decoded.
    private(set) var writtenHost = RawText(start: nil, count: 0)
    /// Decoded, without `.` and `..`. Escaped slashes are marked.
    private(set) var path = RawText(start: nil, count: 0)
    /// Between the slashes of the path.
    private(set) var segments = UnsafeBufferPointer<RawText>(start: nil, count: 0)
    /// What stands behind the `?`, once ``takeQuery()`` has taken it apart.
    private(set) var query = UnsafeBufferPointer<Item>(start: nil, count: 0)

    /// What ``takeQuery()`` needs: the text, room for its items, and whether any of it is escaped.
    private var rawQuery = RawText(start: nil, count: 0)
    private let items: UnsafeMutablePointer<Item>
    private let isEscaped: Bool
    private var decoder: URLDecoder

    struct Item {
        let name: RawText
        let value: RawText
    }

    /// How long a URL may be where nothing else is set, in bytes.
    static let defaultLength = 16_384
    /// What can be set instead. The memory that a search takes grows with it, up to 64 MiB for the largest expressions.
    static let lengths = 256...262_144
    /// The ports that schemes have anyway (WHATWG URL, "special scheme").
    static let defaultPorts = ["http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"]

    /// Takes a URL apart, all but its query, and lends the pieces.
    ///
    /// - Parameter longest: How many bytes it may have.
    /// - Throws: `invalidURL`, with the position of what is wrong.
    @inline(__always)
    static func readPath<Result>(
        _ bytes: RawText, longest: Int, _ body: (inout URLText) throws(PluginError) -> Result
    ) throws(PluginError) -> Result {
        let outline = try URLOutline(bytes, longest: longest)
        return try withUnsafeTemporaryAllocation(byteCount: outline.memory, alignment: 16) {
            (memory) throws(PluginError) in
            var url = try URLText(bytes, outline, memory)
            return try body(&url)
        }
    }

    /// Takes a URL apart and lends the pieces.
    ///
    /// - Parameter longest: How many bytes it may have.
    /// - Throws: `invalidURL`, with the position of what is wrong.
    static func read<Result>(
        _ text: String, longest: Int = defaultLength, _ body: (URLText) throws(PluginError) -> Result
    ) throws(PluginError) -> Result {
        try text.withRawText { (bytes) throws(PluginError) in
            try readPath(bytes, longest: longest) { (url) throws(PluginError) in
                try url.takeQuery()
                return try body(url)
            }
        }
    }

    @inline(__always)
    private init(
        _ bytes: RawText, _ outline: URLOutline, _ memory: UnsafeMutableRawBufferPointer
    ) throws(PluginError) {
        self.bytes = bytes
        isEscaped = outline.isEscaped
        let segments = memory.baseAddress!.bindMemory(to: RawText.self, capacity: outline.slashes + 1)
        items = UnsafeMutableRawPointer(segments + outline.slashes + 1)
            .bindMemory(to: Item.self, capacity: outline.items)
        let text = UnsafeMutableRawPointer(items + outline.items).assumingMemoryBound(to: UInt8.self)
        decoder = URLDecoder(url: bytes, text: text)

        if outline.schemeEnd > 0 { scheme = decoder.lowerCase(bytes.part(0, outline.schemeEnd)) }
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

    /// The text of the URL, copied.
    var text: String { bytes.string }

    private mutating func takeHost(_ authority: RawText) throws(PluginError) {
        if scheme == nil, authority.isEmpty { return }
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

    /// Takes the query apart, once: there is room for what is decoded once. On the way of a call that comes last: what
    /// the path leads to is on its way from memory then.
    ///
    /// - Throws: `invalidURL`, with the position of what is wrong.
    @inline(__always)
    mutating func takeQuery() throws(PluginError) {
        let query = rawQuery
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
        self.query = UnsafeBufferPointer(start: items, count: count)
    }
}
