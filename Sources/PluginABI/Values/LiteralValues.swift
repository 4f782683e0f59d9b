// The values of a literal of parameters, which are of any type that is ValueConvertible.

/// A value in a literal of parameters.
@usableFromInline typealias LiteralValue = (any ValueConvertible)?

extension EncodedValues {
    /// Encodes the named values of a literal.
    @usableFromInline init(literal elements: UnsafeBufferPointer<(String, LiteralValue)>) {
        // A copy of an element would cost much more than its encoding, so the elements are read in place.
        let start = UnsafeRawPointer(elements.baseAddress!)
        let stride = MemoryLayout<(String, LiteralValue)>.stride
        var (size, element) = (Size(elements.count), start)
        for _ in 0..<elements.count {
            size.text &+= element.assumingMemoryBound(to: String.self).pointee.utf8.count
            guard size.add((element + valueOffset).assumingMemoryBound(to: LiteralValue.self)) else {
                self.init(converting: elements.map { ($0.0, $0.1) })
                return
            }
            element += stride
        }
        self.init(elements.count, size) { writer in
            var (entry, element) = (writer.reserve(plugin_entry.self, elements.count), start)
            for _ in 0..<elements.count {
                let key = writer.copy(element.assumingMemoryBound(to: String.self).pointee)
                let value = writer.encode((element + valueOffset).assumingMemoryBound(to: LiteralValue.self))
                entry.initialize(to: plugin_entry(key: key, value: value))
                entry += 1
                element += stride
            }
        }
    }

    /// Encodes the positional values of a literal.
    @usableFromInline init(literal elements: UnsafeBufferPointer<LiteralValue>) {
        let start = elements.baseAddress!
        var size = Size(elements.count)
        for index in 0..<elements.count {
            guard size.add(start + index) else {
                self.init(converting: elements.map { ("", $0) })
                return
            }
        }
        self.init(elements.count, size) { writer in
            let entries = writer.reserve(plugin_entry.self, elements.count)
            for index in 0..<elements.count {
                let value = writer.encode(start + index)
                (entries + index).initialize(to: plugin_entry(key: plugin_string(), value: value))
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

// The types that are read in place, without a conversion: those of literals, Value, and lists and maps of these.

/// The offset of the value in an element of a literal: after the name.
private let valueOffset = MemoryLayout<String>.stride

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
