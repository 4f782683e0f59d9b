// The values of a literal of parameters, which are of any type that is ValueConvertible.

/// A value in a literal of parameters.
@usableFromInline typealias LiteralValue = (any ValueConvertible)?

extension EncodedValues {
    /// Encodes the named values of a literal.
    @usableFromInline init(literal elements: UnsafeBufferPointer<(String, LiteralValue)>) {
        var size = Size(elements.count)
        for index in elements.indices {
            size.text += elements[index].0.utf8.count
            guard size.add(literal: elements[index].1) else {
                self.init(converting: elements.map { ($0.0, $0.1) })
                return
            }
        }
        self.init(elements.count, size) { writer in
            let start = writer.reserve(plugin_entry.self, elements.count)
            for index in elements.indices {
                let key = writer.copy(elements[index].0)
                (start + index).initialize(to: plugin_entry(key: key, value: writer.encode(literal: elements[index].1)))
            }
        }
    }

    /// Encodes the values of a literal by position.
    @usableFromInline init(literal elements: UnsafeBufferPointer<LiteralValue>) {
        var size = Size(elements.count)
        for index in elements.indices {
            guard size.add(literal: elements[index]) else {
                self.init(converting: elements.map { ("", $0) })
                return
            }
        }
        self.init(elements.count, size) { writer in
            let start = writer.reserve(plugin_entry.self, elements.count)
            for index in elements.indices {
                let value = writer.encode(literal: elements[index])
                (start + index).initialize(to: plugin_entry(key: plugin_string(), value: value))
            }
        }
    }

    /// Encodes values of which some are converted first.
    private init(converting elements: [(String, LiteralValue)]) {
        do throws(PluginError) {
            let values = try elements.enumerated().map { (index, element) throws(PluginError) in
                (element.0, try Self.convert(element.1, element.0.isEmpty ? "number \(index + 1)" : element.0))
            }
            self = values.withUnsafeBufferPointer { EncodedValues($0) }
        } catch {
            self.init(0, Size(failure: error)) { _ in }
        }
    }

    private static func convert(_ value: LiteralValue, _ name: String) throws(PluginError) -> Value {
        do throws(PluginError) { return try value?.value ?? .null } catch {
            throw PluginError(error.code, "The parameter “\(name.shortened)” cannot be passed. \(error.message)")
        }
    }
}

// The types that are read where they lie, without a conversion: those of literals, and Value.

extension EncodedValues.Size {
    /// Adds what a value needs. Returns false if it must be converted first.
    @inline(__always)
    fileprivate mutating func add(literal value: borrowing LiteralValue) -> Bool {
        withUnsafePointer(to: value) { value in
            guard let value = value.ifPresent else { return true }
            return add(opened: value.pointee)
        }
    }

    private mutating func add<T: ValueConvertible>(opened value: borrowing T) -> Bool {
        if T.self == Int.self || T.self == Double.self || T.self == Bool.self { return true }
        return withUnsafePointer(to: value) { value in
            if T.self == String.self {
                add(string: UnsafeRawPointer(value).assumingMemoryBound(to: String.self).pointee)
                return true
            }
            guard T.self == Value.self else { return false }
            add(UnsafeRawPointer(value).assumingMemoryBound(to: Value.self).pointee)
            return true
        }
    }
}

extension EncodedValues.Writer {
    @inline(__always)
    fileprivate mutating func encode(literal value: borrowing LiteralValue) -> plugin_value {
        withUnsafePointer(to: value) { value in
            guard let value = value.ifPresent else { return plugin_value_null() }
            return encode(opened: value.pointee)
        }
    }

    private mutating func encode<T: ValueConvertible>(opened value: borrowing T) -> plugin_value {
        withUnsafePointer(to: value) { value in
            let memory = UnsafeRawPointer(value)
            if T.self == Int.self { return plugin_value_int(Int64(memory.load(as: Int.self))) }
            if T.self == Double.self { return plugin_value_double(memory.load(as: Double.self)) }
            if T.self == Bool.self { return plugin_value_bool(memory.load(as: Bool.self) ? 1 : 0) }
            if T.self == String.self { return encode(string: memory.assumingMemoryBound(to: String.self).pointee) }
            // `Size` has made sure that there is no other type.
            return encode(memory.assumingMemoryBound(to: Value.self).pointee)
        }
    }
}

extension UnsafePointer<LiteralValue> {
    /// The value itself, where it lies; `nil` if there is none. Sound because the content of an optional lies where the
    /// optional lies.
    fileprivate var ifPresent: UnsafePointer<any ValueConvertible>? {
        pointee == nil ? nil : UnsafeRawPointer(self).assumingMemoryBound(to: (any ValueConvertible).self)
    }
}
