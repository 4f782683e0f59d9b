// The values of a literal of parameters, which are of any type that is ValueConvertible.

/// A value in a literal of parameters.
@usableFromInline typealias LiteralValue = (any ValueConvertible)?

extension EncodedValues {
    /// Encodes the named values of a literal.
    @usableFromInline init(literal elements: UnsafeBufferPointer<(String, LiteralValue)>) {
        let all = LiteralElements(elements)
        self = EncodedValues(plain: all) ?? EncodedValues(any: all) { elements.map { ($0.0, $0.1) } }
    }

    /// Encodes the positional values of a literal.
    @usableFromInline init(literal elements: UnsafeBufferPointer<LiteralValue>) {
        let all = LiteralElements(elements)
        self = EncodedValues(plain: all) ?? EncodedValues(any: all) { elements.map { ("", $0) } }
    }

    /// Encodes a literal of numbers, truth values, text and `nil`, as almost every literal is. Fails for others, and for
    /// so much text that one of the strings may be too long.
    @inline(__always)
    private init?(plain elements: LiteralElements) {
        let structures = elements.count &* MemoryLayout<plugin_entry>.stride
        var text = 0
        for index in 0..<elements.count {
            guard let count = elements.value(index).plainTextCount else { return nil }
            text &+= count
            if let name = elements.name(index) { text &+= name.pointee.utf8.count }
        }
        guard text <= Int(UInt32.max) else { return nil }
        self.init(elements.count, bytes: structures &+ text &+ PlainText.excess) { memory in
            let entries = memory.bindMemory(to: plugin_entry.self, capacity: elements.count)
            var text = PlainText(end: memory + structures)
            for index in 0..<elements.count {
                let key = elements.name(index).map { text.append($0) } ?? plugin_string()
                (entries + index).initialize(
                    to: plugin_entry(key: key, value: text.encode(elements.value(index))))
            }
        }
    }

    /// Encodes the elements of any literal.
    ///
    /// - Parameter unencoded: Returns copies of the elements, for values that must be converted first.
    @inline(__always)
    private init(any elements: LiteralElements, unencoded: () -> [(String, LiteralValue)]) {
        var size = Size(elements.count)
        for index in 0..<elements.count {
            if let name = elements.name(index) { size.text &+= name.pointee.utf8.count }
            guard size.add(elements.value(index)) else {
                self.init(converting: unencoded())
                return
            }
        }
        self.init(elements.count, size) { writer in
            let entries = writer.reserve(plugin_entry.self, elements.count)
            for index in 0..<elements.count {
                let key = elements.name(index).map { writer.copy($0.pointee) } ?? plugin_string()
                let value = writer.encode(elements.value(index))
                (entries + index).initialize(to: plugin_entry(key: key, value: value))
            }
        }
    }

    /// Encodes values, some of which must be converted first.
    private init(converting elements: [(String, LiteralValue)]) {
        do throws(PluginError) {
            let values = try elements.enumerated().map { (index, element) throws(PluginError) in
                (element.0, try Self.convert(element.1, element.0, position: index + 1))
            }
            self = values.withUnsafeBufferPointer { EncodedValues($0) }
        } catch {
            self.init(0, Size(failure: error)) { _ in }
        }
    }

    /// Converts a value of a literal.
    ///
    /// - Parameters:
    ///   - value: The value.
    ///   - name: Its name, for errors; empty if it has none.
    ///   - position: Its position, from 1, for errors.
    static func convert(_ value: LiteralValue, _ name: String, position: Int) throws(PluginError) -> Value {
        do throws(PluginError) { return try value?.value ?? .null } catch {
            let title = name.isEmpty ? "at position \(position)" : "“\(name.shortened)”"
            throw PluginError(error.code, "The parameter \(title) cannot be passed. \(error.message)")
        }
    }
}

/// The elements of a literal. They are read in place: copying one would cost much more than encoding it.
private struct LiteralElements {
    private let start: UnsafeRawPointer
    let count: Int
    private let stride: Int
    /// The offset of the value in an element: after the name, if there is one.
    private let valueOffset: Int

    @inline(__always)
    init(_ elements: UnsafeBufferPointer<(String, LiteralValue)>) {
        (start, count) = (UnsafeRawPointer(elements.baseAddress!), elements.count)
        (stride, valueOffset) = (MemoryLayout<(String, LiteralValue)>.stride, MemoryLayout<String>.stride)
    }

    @inline(__always)
    init(_ elements: UnsafeBufferPointer<LiteralValue>) {
        (start, count) = (UnsafeRawPointer(elements.baseAddress!), elements.count)
        (stride, valueOffset) = (MemoryLayout<LiteralValue>.stride, 0)
    }

    /// The name of an element; `nil` in a literal of positional values.
    @inline(__always)
    func name(_ index: Int) -> UnsafePointer<String>? {
        valueOffset == 0 ? nil : (start + index &* stride).assumingMemoryBound(to: String.self)
    }

    @inline(__always)
    func value(_ index: Int) -> UnsafePointer<LiteralValue> {
        (start + (index &* stride &+ valueOffset)).assumingMemoryBound(to: LiteralValue.self)
    }
}

/// The text of a literal of plain values, written one string after the other.
private struct PlainText {
    private var end: UnsafeMutableRawPointer

    /// How many bytes beyond the end of the text may be written: short strings are written as a whole.
    static let excess = MemoryLayout<String>.size

    @inline(__always)
    init(end: UnsafeMutableRawPointer) { self.end = end }

    @inline(__always)
    mutating func append(_ string: UnsafePointer<String>) -> plugin_string {
        let start = end
        let count: Int
        if let short = string.short {
            start.storeBytes(of: short.words.0, as: UInt64.self)
            (start + 8).storeBytes(of: short.words.1, as: UInt64.self)
            count = short.count
        } else {
            count = string.pointee.withPluginString { source in
                if let bytes = source.bytes { start.copyMemory(from: bytes, byteCount: Int(source.count)) }
                return Int(source.count)
            }
        }
        end += count
        return plugin_string(bytes: start.assumingMemoryBound(to: CChar.self), count: UInt64(count))
    }

    /// Encodes a value that has a `plainTextCount`.
    @inline(__always)
    mutating func encode(_ value: UnsafePointer<LiteralValue>) -> plugin_value {
        guard let (type, content) = value.content else { return plugin_value_null() }
        if type == String.self {
            let text = append(content.assumingMemoryBound(to: String.self))
            return plugin_value_string(text.bytes, UInt32(truncatingIfNeeded: text.count))
        }
        if type == Int.self { return plugin_value_int(Int64(content.load(as: Int.self))) }
        if type == Double.self { return plugin_value_double(content.load(as: Double.self)) }
        return plugin_value_bool(content.load(as: Bool.self) ? 1 : 0)
    }
}

extension UnsafePointer<LiteralValue> {
    /// The number of bytes of text in a value that is a number, a truth value, text or `nil`; `nil` for others.
    @inline(__always)
    fileprivate var plainTextCount: Int? {
        guard let (type, content) = content else { return 0 }
        if type == String.self { return content.assumingMemoryBound(to: String.self).pointee.utf8.count }
        return type == Int.self || type == Double.self || type == Bool.self ? 0 : nil
    }
}

// The types that are read in place, without a conversion: those of literals, Value, and lists and maps of these.

extension EncodedValues.Size {
    /// Adds what a value needs. Returns false if it must be converted first.
    @inline(__always)
    fileprivate mutating func add(_ value: UnsafePointer<LiteralValue>) -> Bool {
        guard let (type, content) = value.content else { return true }
        if type == Int.self || type == Double.self || type == Bool.self { return true }
        if type == String.self {
            add(string: content.assumingMemoryBound(to: String.self).pointee)
            return true
        }
        if type == Value.self {
            add(content.assumingMemoryBound(to: Value.self).pointee)
            return true
        }
        return visitCollection(type, content, &self) != nil
    }
}

extension EncodedValues.Writer {
    @inline(__always)
    fileprivate mutating func encode(_ value: UnsafePointer<LiteralValue>) -> plugin_value {
        guard let (type, content) = value.content else { return plugin_value_null() }
        if type == Int.self { return plugin_value_int(Int64(content.load(as: Int.self))) }
        if type == Double.self { return plugin_value_double(content.load(as: Double.self)) }
        if type == Bool.self { return plugin_value_bool(content.load(as: Bool.self) ? 1 : 0) }
        if type == String.self { return encode(string: content.assumingMemoryBound(to: String.self).pointee) }
        if type == Value.self { return encode(content.assumingMemoryBound(to: Value.self).pointee) }
        // `Size` has made sure that there is no other type.
        return visitCollection(type, content, &self)!
    }
}

extension UnsafePointer<LiteralValue> {
    /// The type and the memory of the value; `nil` for `nil`.
    ///
    /// Sound for the types above, which fit into the three words with which an existential begins; its type follows,
    /// and is zero in an optional without a value (docs/ABI/TypeLayout.rst of the Swift project; a test checks it).
    @inline(__always)
    fileprivate var content: (type: Any.Type, memory: UnsafeRawPointer)? {
        let memory = UnsafeRawPointer(self)
        let type = (memory + 3 * MemoryLayout<UInt>.stride).load(as: Any.Type?.self)
        return type.map { ($0, memory) }
    }
}

// MARK: Lists and maps

/// An element of the lists and maps that are read in place.
private protocol LiteralElement {
    func add(to size: inout EncodedValues.Size)
    func encode(in writer: inout EncodedValues.Writer) -> plugin_value
}

extension Int: LiteralElement {
    fileprivate func add(to size: inout EncodedValues.Size) {}
    fileprivate func encode(in writer: inout EncodedValues.Writer) -> plugin_value { plugin_value_int(Int64(self)) }
}

extension Double: LiteralElement {
    fileprivate func add(to size: inout EncodedValues.Size) {}
    fileprivate func encode(in writer: inout EncodedValues.Writer) -> plugin_value { plugin_value_double(self) }
}

extension Bool: LiteralElement {
    fileprivate func add(to size: inout EncodedValues.Size) {}
    fileprivate func encode(in writer: inout EncodedValues.Writer) -> plugin_value { plugin_value_bool(self ? 1 : 0) }
}

extension String: LiteralElement {
    fileprivate func add(to size: inout EncodedValues.Size) { size.add(string: self) }
    fileprivate func encode(in writer: inout EncodedValues.Writer) -> plugin_value { writer.encode(string: self) }
}

extension Value: LiteralElement {
    fileprivate func add(to size: inout EncodedValues.Size) { size.add(self) }
    fileprivate func encode(in writer: inout EncodedValues.Writer) -> plugin_value { writer.encode(self) }
}

private protocol CollectionVisitor {
    associatedtype Visited
    mutating func visit(list: [some LiteralElement]) -> Visited
    mutating func visit(map: [String: some LiteralElement]) -> Visited
}

/// Lets a visitor visit a list or a map, if it is of one of these types; otherwise returns `nil`.
@inline(never)
private func visitCollection<Visitor: CollectionVisitor>(
    _ type: Any.Type, _ content: UnsafeRawPointer, _ visitor: inout Visitor
) -> Visitor.Visited? {
    func list<Element: LiteralElement>(of element: Element.Type) -> Visitor.Visited {
        visitor.visit(list: content.assumingMemoryBound(to: [Element].self).pointee)
    }
    func map<Element: LiteralElement>(of element: Element.Type) -> Visitor.Visited {
        visitor.visit(map: content.assumingMemoryBound(to: [String: Element].self).pointee)
    }
    return if type == [String].self {
        list(of: String.self)
    } else if type == [Int].self {
        list(of: Int.self)
    } else if type == [Value].self {
        list(of: Value.self)
    } else if type == [Double].self {
        list(of: Double.self)
    } else if type == [Bool].self {
        list(of: Bool.self)
    } else if type == [String: String].self {
        map(of: String.self)
    } else if type == [String: Int].self {
        map(of: Int.self)
    } else if type == [String: Value].self {
        map(of: Value.self)
    } else if type == [String: Double].self {
        map(of: Double.self)
    } else if type == [String: Bool].self {
        map(of: Bool.self)
    } else {
        nil
    }
}

extension EncodedValues.Size: CollectionVisitor {
    fileprivate mutating func visit(list: [some LiteralElement]) {
        add(listOf: list.count)
        nested { size in for element in list { element.add(to: &size) } }
    }

    fileprivate mutating func visit(map: [String: some LiteralElement]) {
        add(mapOf: map.count)
        nested { size in
            for (key, element) in map {
                size.text += key.utf8.count
                element.add(to: &size)
            }
        }
    }
}

extension EncodedValues.Writer: CollectionVisitor {
    fileprivate mutating func visit(list: [some LiteralElement]) -> plugin_value {
        let start = reserve(plugin_value.self, list.count)
        for (offset, element) in list.enumerated() { (start + offset).initialize(to: element.encode(in: &self)) }
        return plugin_value_list(start, UInt32(list.count))
    }

    fileprivate mutating func visit(map: [String: some LiteralElement]) -> plugin_value {
        let start = reserve(plugin_entry.self, map.count)
        for (offset, (key, element)) in map.enumerated() {
            let key = copy(key)
            (start + offset).initialize(to: plugin_entry(key: key, value: element.encode(in: &self)))
        }
        return plugin_value_map(start, UInt32(map.count))
    }
}
