// Conversion between Value and plugin_value.

extension Value {
    /// Copies a borrowed value. The host guarantees that a value it passes on has valid UTF-8, known kinds, and at most
    /// `PLUGIN_DEPTH_MAX` levels.
    public init(copying raw: plugin_value, host: UnsafePointer<plugin_host>) {
        switch raw.kind {
        case PLUGIN_KIND_BOOL: self = .bool(raw.as.boolean != 0)
        case PLUGIN_KIND_INT: self = .int(Int(raw.as.integer))
        case PLUGIN_KIND_DOUBLE: self = .double(raw.as.real)
        default: self.init(copyingContents: raw, host)
        }
    }

    /// Copies a value other than a scalar. A separate function, because it saves more registers.
    @inline(never)
    private init(copyingContents raw: plugin_value, _ host: UnsafePointer<plugin_host>) {
        let count = Int(raw.count)
        switch raw.kind {
        case PLUGIN_KIND_STRING:
            self = .string(String(copying: raw.as.string, count: count))
        case PLUGIN_KIND_BYTES:
            self = .bytes(Bytes(copying: UnsafeRawBufferPointer(start: raw.as.bytes, count: count)))
        case PLUGIN_KIND_LIST:
            self = .list(
                UnsafeBufferPointer(start: raw.as.list, count: count).map { Value(copying: $0, host: host) })
        case PLUGIN_KIND_MAP:
            let entries = UnsafeBufferPointer(start: raw.as.map, count: count)
            self = .map(
                Dictionary(
                    entries.lazy.map { ($0.key.text, Value(copying: $0.value, host: host)) },
                    uniquingKeysWith: { $1 }))
        case PLUGIN_KIND_OBJECT: self = .object(Object(retaining: raw.as.object, host: host))
        default: self = .null
        }
    }

    /// Lends the value to `body` in the form in which it crosses the boundary.
    public func lend(to body: (plugin_value) -> Void) throws(PluginError) {
        switch self {
        case .null: body(plugin_value_null())
        case .bool(let flag): body(plugin_value_bool(flag ? 1 : 0))
        case .int(let number): body(plugin_value_int(Int64(number)))
        case .double(let number): body(plugin_value_double(number))
        case .object(let object): object.lend(to: body)
        case .string(let string): try string.lend(to: body)
        case .bytes, .list, .map:
            let encoded = EncodedValues(one: self)
            if let failure = encoded.failure { throw failure }
            withExtendedLifetime(encoded) { body(encoded.entries.pointee.value) }
        }
    }
}
