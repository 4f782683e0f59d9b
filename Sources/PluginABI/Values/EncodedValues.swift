/// Values laid out in one block of memory in the form in which they cross the boundary: made once, lent many times.
///
/// The block begins with the structures, followed by the text. Bytes and objects are not copied; the block retains
/// them. Immutable after `init`, hence `@unchecked Sendable`.
@usableFromInline struct EncodedValues: @unchecked Sendable {
    private let block: ManagedBuffer<Header, UInt64>

    private struct Header {
        let entryCount: Int
        /// `nil` in most blocks, which are then made and freed faster.
        let extras: Extras?
    }

    /// The part of the header that few blocks need.
    final class Extras {
        /// The objects that the block points to, and therefore retains.
        let owners: [AnyObject]
        let failure: PluginError?

        init(owners: [AnyObject] = [], failure: PluginError? = nil) { (self.owners, self.failure) = (owners, failure) }
    }

    /// Encodes named values. An empty name means "by position".
    @usableFromInline init(_ entries: UnsafeBufferPointer<(String, Value)>) {
        var size = Size(entries.count)
        size.add(entries)
        self.init(entries.count, size) { $0.write(entries) }
    }

    /// Encodes values by position.
    @usableFromInline init(positional values: UnsafeBufferPointer<Value>) {
        var size = Size(values.count)
        size.add(values)
        self.init(values.count, size) { $0.write(positional: values) }
    }

    /// Encodes one value, by position. Not inlined, because the code is long.
    @inline(never)
    init(one value: borrowing Value) {
        var size = Size(1)
        size.add(value)
        self.init(1, size) { $0.write(one: value) }
    }

    /// Encodes plain values, which need no part of the header but the number of entries.
    ///
    /// - Parameter write: Writes the entries, and the text behind them.
    @inline(__always)
    init(_ count: Int, bytes: Int, write: (UnsafeMutableRawPointer) -> Void) {
        block = ManagedBuffer.create(minimumCapacity: (bytes &+ 7) / 8) { block in
            write(UnsafeMutableRawPointer(block.withUnsafeMutablePointerToElements { $0 }))
            return Header(entryCount: count, extras: nil)
        }
    }

    @inline(__always)
    init(_ count: Int, _ size: Size, write: (inout Writer) -> Void) {
        let bytes = size.failure == nil ? size.structures + size.text : 0
        block = ManagedBuffer.create(minimumCapacity: (bytes + 7) / 8) { block in
            if let failure = size.failure { return Header(entryCount: 0, extras: failure) }
            let memory = UnsafeMutableRawPointer(block.withUnsafeMutablePointerToElements { $0 })
            var writer = Writer(structures: memory, text: memory + size.structures)
            write(&writer)
            return Header(entryCount: count, extras: writer.owners.map { Extras(owners: $0) })
        }
    }

    // `block.header` is not used, because each access would check that it is exclusive, and copy the header.

    var entryCount: Int { block.withUnsafeMutablePointerToHeader { $0.pointee.entryCount } }

    /// The reason why the values cannot cross the boundary. If there is one, there are no entries.
    var failure: PluginError? { block.withUnsafeMutablePointerToHeader { $0.pointee.extras?.failure } }

    /// The entries. Valid as long as the block lives.
    var entries: UnsafePointer<plugin_entry> {
        block.withUnsafeMutablePointerToElements { UnsafeRawPointer($0).assumingMemoryBound(to: plugin_entry.self) }
    }
}

extension EncodedValues {
    // The values are read in place, through pointers: a copy of each would cost reference counting.

    /// The memory that values need, or the reason why they cannot be passed.
    struct Size {
        var structures: Int
        var text = 0
        var depth = 0
        /// The failure of the encoding, in the form in which a block keeps it.
        var failure: Extras?

        init(_ entryCount: Int) { structures = entryCount * MemoryLayout<plugin_entry>.stride }
        init(failure: PluginError) { (structures, self.failure) = (0, Extras(failure: failure)) }

        mutating func add(_ entries: UnsafeBufferPointer<(String, Value)>) {
            for index in entries.indices {
                text += entries[index].0.utf8.count
                add(entries[index].1)
            }
        }

        mutating func add(_ values: UnsafeBufferPointer<Value>) {
            for index in values.indices { add(values[index]) }
        }

        @inline(__always)
        mutating func add(_ value: borrowing Value) {
            switch value {
            case .null, .bool, .int, .double, .object: break
            case .string(let string): add(string: string)
            case .bytes(let bytes): add(bytes.count, "A bytes value")
            case .list(let values):
                add(listOf: values.count)
                nested { size in values.withUnsafeBufferPointer { size.add($0) } }
            case .map(let entries):
                add(mapOf: entries.count)
                nested { size in
                    for (key, value) in entries {
                        size.text += key.utf8.count
                        size.add(one: value)
                    }
                }
            }
        }

        /// Not inlined, because values nest: the compiler would repeat the code several levels deep.
        @inline(never)
        private mutating func add(one value: borrowing Value) { add(value) }

        @inline(__always)
        mutating func add(string: borrowing String) {
            let count = string.utf8.count
            add(count, "A string", text: count)
        }

        mutating func add(listOf count: Int) {
            add(count, "A list", structures: count * MemoryLayout<plugin_value>.stride)
        }

        mutating func add(mapOf count: Int) {
            add(count, "A map", structures: count * MemoryLayout<plugin_entry>.stride)
        }

        private mutating func add(_ count: Int, _ what: String, structures: Int = 0, text: Int = 0) {
            if count > Int(UInt32.max) {
                fail("\(what) has \(count) bytes or elements; at most \(UInt32.max) are accepted.")
            }
            self.structures &+= structures
            self.text &+= text
        }

        private mutating func fail(_ message: String) { failure = Extras(failure: PluginError(.invalidValue, message)) }

        mutating func nested(_ body: (inout Size) -> Void) {
            guard depth < PLUGIN_DEPTH_MAX else {
                fail("Lists and maps are nested more than \(PLUGIN_DEPTH_MAX) levels deep.")
                return
            }
            depth += 1
            body(&self)
            depth -= 1
        }
    }

    /// Writes values to memory that `Size` has measured.
    struct Writer {
        var structures: UnsafeMutableRawPointer
        var text: UnsafeMutableRawPointer
        var owners: [AnyObject]?

        mutating func write(_ entries: UnsafeBufferPointer<(String, Value)>) {
            let start = reserve(plugin_entry.self, entries.count)
            for index in entries.indices {
                let key = copy(entries[index].0)
                (start + index).initialize(to: plugin_entry(key: key, value: encode(entries[index].1)))
            }
        }

        mutating func write(positional values: UnsafeBufferPointer<Value>) {
            let start = reserve(plugin_entry.self, values.count)
            for index in values.indices {
                (start + index).initialize(to: plugin_entry(key: plugin_string(), value: encode(values[index])))
            }
        }

        mutating func write(one value: borrowing Value) {
            let start = reserve(plugin_entry.self, 1)
            start.initialize(to: plugin_entry(key: plugin_string(), value: encode(value)))
        }

        @inline(__always)
        mutating func encode(_ value: borrowing Value) -> plugin_value {
            switch value {
            case .null: return plugin_value_null()
            case .bool(let flag): return plugin_value_bool(flag ? 1 : 0)
            case .int(let number): return plugin_value_int(Int64(number))
            case .double(let number): return plugin_value_double(number)
            case .string(let string): return encode(string: string)
            case .bytes(let bytes):
                retain(bytes.storage)
                return bytes.borrowed
            case .object(let object):
                retain(object)
                return plugin_value_object(object.handle)
            case .list(let values):
                let start = reserve(plugin_value.self, values.count)
                for (offset, value) in values.enumerated() { (start + offset).initialize(to: encode(one: value)) }
                return plugin_value_list(start, UInt32(values.count))
            case .map(let entries):
                let start = reserve(plugin_entry.self, entries.count)
                for (offset, (key, value)) in entries.enumerated() {
                    let key = copy(key)
                    (start + offset).initialize(to: plugin_entry(key: key, value: encode(one: value)))
                }
                return plugin_value_map(start, UInt32(entries.count))
            }
        }

        /// Not inlined, because values nest.
        @inline(never)
        private mutating func encode(one value: borrowing Value) -> plugin_value { encode(value) }

        @inline(__always)
        mutating func encode(string: borrowing String) -> plugin_value {
            let copied = copy(string)
            return plugin_value_string(copied.bytes, UInt32(copied.count))
        }

        private mutating func retain(_ owner: AnyObject) {
            if owners == nil { owners = [] }
            owners!.append(owner)
        }

        mutating func reserve<T>(_ type: T.Type, _ count: Int) -> UnsafeMutablePointer<T> {
            defer { structures += count * MemoryLayout<T>.stride }
            return structures.bindMemory(to: type, capacity: count)
        }

        @inline(__always)
        mutating func copy(_ string: borrowing String) -> plugin_string {
            string.withPluginString { source in
                let start = text
                if let bytes = source.bytes { start.copyText(from: bytes, Int(source.count)) }
                text += Int(source.count)
                return plugin_string(bytes: start.assumingMemoryBound(to: CChar.self), count: source.count)
            }
        }
    }
}

extension UnsafeMutableRawPointer {
    /// Copies text. Up to 16 bytes, enough for most names, are copied without a function call, in overlapping units.
    @inline(__always)
    fileprivate func copyText(from source: UnsafeRawPointer, _ count: Int) {
        func copy<Word: BitwiseCopyable>(_ type: Word.Type, at offset: Int) {
            storeBytes(
                of: source.loadUnaligned(fromByteOffset: offset, as: Word.self), toByteOffset: offset, as: Word.self)
        }
        if count > 16 {
            copyMemory(from: source, byteCount: count)
        } else if count >= 8 {
            copy(UInt64.self, at: 0)
            copy(UInt64.self, at: count &- 8)
        } else if count >= 4 {
            copy(UInt32.self, at: 0)
            copy(UInt32.self, at: count &- 4)
        } else if count > 0 {
            copy(UInt8.self, at: 0)
            copy(UInt8.self, at: count / 2)
            copy(UInt8.self, at: count &- 1)
        }
    }
}

extension Bytes {
    /// The bytes in the form in which they cross the boundary. Valid as long as `storage` lives.
    var borrowed: plugin_value {
        plugin_value_bytes(storage.buffer.baseAddress?.assumingMemoryBound(to: UInt8.self), UInt32(count))
    }
}
