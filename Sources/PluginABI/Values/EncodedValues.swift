/// Values laid out in one block of memory in the form in which they cross the border: made once, lent many times.
///
/// Structures stand first, text behind them. Bytes and objects stay where they are; the block holds on to them.
/// Immutable after `init`, hence `@unchecked Sendable`.
struct EncodedValues: @unchecked Sendable {
    private let block: ManagedBuffer<Header, UInt64>

    private struct Header {
        /// What the block points to outside itself.
        let holds: [AnyObject]
        let entryCount: Int
        let failure: PluginError?
    }

    /// Of no values at all.
    static let none = EncodedValues(EmptyCollection())

    init(_ entries: some Collection<(String, Value)>) {
        var size = Size(structures: entries.count * MemoryLayout<plugin_entry>.stride)
        for (key, value) in entries { size.add(key: key, value) }
        let bytes = size.failure == nil ? size.structures + size.text : 0
        block = ManagedBuffer.create(minimumCapacity: (bytes + 7) / 8) { block in
            guard size.failure == nil else { return Header(holds: [], entryCount: 0, failure: size.failure) }
            let memory = UnsafeMutableRawPointer(block.withUnsafeMutablePointerToElements { $0 })
            var writer = Writer(structures: memory, text: memory + size.structures)
            writer.write(entries)
            return Header(holds: writer.holds, entryCount: entries.count, failure: nil)
        }
    }

    // Not `block.header`: each access would be checked for exclusiveness, and would copy it.

    var entryCount: Int { block.withUnsafeMutablePointerToHeader { $0.pointee.entryCount } }

    /// Why the values cannot cross the border; there are no entries then.
    var failure: PluginError? { block.withUnsafeMutablePointerToHeader { $0.pointee.failure } }

    /// The entries, valid as long as the block lives.
    var entries: UnsafePointer<plugin_entry> {
        block.withUnsafeMutablePointerToElements { UnsafeRawPointer($0).assumingMemoryBound(to: plugin_entry.self) }
    }
}

extension EncodedValues {
    /// How much memory values need, and whether they can be passed at all.
    private struct Size {
        var structures: Int
        var text = 0
        var depth = 0
        var failure: PluginError?

        init(structures: Int) { self.structures = structures }

        mutating func add(key: String, _ value: Value) {
            text += key.utf8.count
            add(value)
        }

        mutating func add(_ value: Value) {
            switch value {
            case .null, .bool, .int, .double, .object: break
            case .string(let string): add(string.utf8.count, "A string", text: string.utf8.count)
            case .bytes(let bytes): add(bytes.count, "A run of bytes")
            case .list(let values):
                add(values.count, "A list", structures: values.count * MemoryLayout<plugin_value>.stride)
                nested { size in for value in values { size.add(value) } }
            case .map(let entries):
                add(entries.count, "A map", structures: entries.count * MemoryLayout<plugin_entry>.stride)
                nested { size in for (key, value) in entries { size.add(key: key, value) } }
            }
        }

        private mutating func add(_ count: Int, _ what: String, structures: Int = 0, text: Int = 0) {
            if count > Int(UInt32.max) {
                failure = PluginError(.invalidValue, "\(what) of \(count) elements is too long: at most \(UInt32.max).")
            }
            self.structures += structures
            self.text += text
        }

        private mutating func nested(_ body: (inout Size) -> Void) {
            guard depth < PLUGIN_DEPTH_MAX else {
                failure = PluginError(.invalidValue, "Lists and maps are nested more than \(PLUGIN_DEPTH_MAX) deep.")
                return
            }
            depth += 1
            body(&self)
            depth -= 1
        }
    }

    /// Lays values out in memory that `Size` has measured.
    private struct Writer {
        var structures: UnsafeMutableRawPointer
        var text: UnsafeMutableRawPointer
        var holds: [AnyObject] = []

        mutating func write(_ entries: some Collection<(String, Value)>) {
            var next = reserve(plugin_entry.self, entries.count)
            for (key, value) in entries {
                next.initialize(to: plugin_entry(key: copy(key), value: encode(value)))
                next += 1
            }
        }

        mutating func encode(_ value: Value) -> plugin_value {
            switch value {
            case .null: return plugin_value_null()
            case .bool(let flag): return plugin_value_bool(flag ? 1 : 0)
            case .int(let number): return plugin_value_int(Int64(number))
            case .double(let number): return plugin_value_double(number)
            case .string(let string):
                let copied = copy(string)
                return plugin_value_string(copied.bytes, UInt32(copied.count))
            case .bytes(let bytes):
                holds.append(bytes.storage)
                return bytes.borrowed
            case .object(let object):
                holds.append(object)
                return plugin_value_object(object.handle)
            case .list(let values):
                let start = reserve(plugin_value.self, values.count)
                for (offset, value) in values.enumerated() { (start + offset).initialize(to: encode(value)) }
                return plugin_value_list(start, UInt32(values.count))
            case .map(let entries):
                let start = UnsafePointer(structures.assumingMemoryBound(to: plugin_entry.self))
                write(entries.lazy.map { ($0.key, $0.value) })
                return plugin_value_map(start, UInt32(entries.count))
            }
        }

        private mutating func reserve<T>(_ type: T.Type, _ count: Int) -> UnsafeMutablePointer<T> {
            defer { structures += count * MemoryLayout<T>.stride }
            return structures.bindMemory(to: type, capacity: count)
        }

        private mutating func copy(_ string: String) -> plugin_string {
            var string = string
            return string.withUTF8 { source in
                let start = text
                if let base = source.baseAddress { start.copyMemory(from: base, byteCount: source.count) }
                text += source.count
                return plugin_string(bytes: start.assumingMemoryBound(to: CChar.self), count: UInt64(source.count))
            }
        }
    }
}

extension Bytes {
    /// The bytes as they cross the border; valid while `storage` lives.
    var borrowed: plugin_value {
        plugin_value_bytes(storage.buffer.baseAddress?.assumingMemoryBound(to: UInt8.self), UInt32(count))
    }
}
