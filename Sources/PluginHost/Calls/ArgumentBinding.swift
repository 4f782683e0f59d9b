import PluginABI

extension Endpoint {
    /// Assigns the parameters of a request, by name or position, to the declared parameters in their order. Converts
    /// values where nothing is lost, and fills in defaults.
    ///
    /// - Parameters:
    ///   - entries: The parameters as given. If a name occurs more than once, the first entry is used, so a parameter
    ///     that the caller passes takes precedence over one in a URL.
    ///   - arguments: Uninitialised memory for the arguments; see ``argumentCount(for:)``.
    /// - Returns: The memory of the rest, which must be deallocated after the call; `nil` if there is none.
    @inline(__always)
    func bind(
        _ entries: UnsafeBufferPointer<plugin_entry>, to arguments: UnsafeMutableBufferPointer<plugin_value>
    ) throws(PluginError) -> UnsafeMutablePointer<plugin_entry>? {
        if hasRest { return try bindWithRest(entries, to: arguments) }
        if !isVariadic, take(entries, as: arguments) { return nil }
        arguments.initialize(repeating: plugin_value(kind: Self.isMissing, count: 0, as: .init()))
        var nextPosition = 0
        for index in entries.indices {
            let entry = entries[index]
            if isVariadic {
                if entry.key.count != 0 { throw .unknownParameter(entry.key.text, self) }
                arguments[index] = entry.value
                continue
            }
            let position: Int
            if entry.key.count == 0 {
                guard nextPosition < parameters.count else { throw .tooManyArguments(entries.count, self) }
                position = nextPosition
                nextPosition += 1
            } else {
                guard let named = parameters.position(of: entry.key, near: index) else {
                    throw .unknownParameter(entry.key.text, self)
                }
                position = named
            }
            guard arguments[position].kind == Self.isMissing else {
                if entry.key.count == 0 { throw .givenTwice(parameters[position].name, self) }
                continue
            }
            arguments[position] = try convert(entry.value, parameters[position])
        }
        guard !isVariadic else { return nil }
        for index in parameters.indices where arguments[index].kind == Self.isMissing {
            if parameters[index].isRequired { throw .missingParameter(parameters[index], self) }
            arguments[index] = parameters[index].defaultValue
        }
        return nil
    }

    /// Returns the number of arguments in a call with these entries: one for each declared parameter and one for the
    /// rest or, if the endpoint is variadic, one for each entry.
    @inline(__always)
    func argumentCount(for entries: UnsafeBufferPointer<plugin_entry>) -> Int {
        isVariadic ? entries.count : parameters.count + (hasRest ? 1 : 0)
    }

    /// Accepts entries that match the declaration exactly: one for each declared parameter, in order and of the
    /// declared type. Returns false for any others. Must not be called for a variadic endpoint.
    @inline(__always)
    func take(
        _ entries: UnsafeBufferPointer<plugin_entry>, as arguments: UnsafeMutableBufferPointer<plugin_value>
    ) -> Bool {
        guard entries.count == parameters.count else { return false }
        guard !entries.isEmpty, var entry = entries.baseAddress, var parameter = parameters.baseAddress,
            var argument = arguments.baseAddress
        else { return true }
        let isPositional = entry.pointee.key.count == 0
        let end = entry + entries.count
        while entry < end {
            guard entry.pointee.value.kind == parameter.pointee.rawKind,
                isPositional ? entry.pointee.key.count == 0 : parameter.pointee.isNamed(entry.pointee.key)
            else { return false }
            argument.initialize(byWordsOf: entry.pointee.value)
            (entry, parameter, argument) = (entry + 1, parameter + 1, argument + 1)
        }
        return true
    }

    /// Like ``take(_:as:)``, but also refuses values that are not sound.
    ///
    /// - Parameter areTrusted: Whether the values need no check.
    @inline(__always)
    func take(
        _ entries: UnsafeBufferPointer<plugin_entry>, as arguments: UnsafeMutableBufferPointer<plugin_value>,
        areTrusted: Bool
    ) -> Bool {
        take(entries, as: arguments)
            && (areTrusted || UnsafeBufferPointer(start: arguments.baseAddress, count: entries.count).areSound)
    }

    /// Returns whether values match the declaration exactly, as ``take(_:as:)`` requires.
    @inline(__always)
    func takes(_ arguments: UnsafeBufferPointer<plugin_value>) -> Bool {
        guard arguments.count == parameters.count else { return false }
        guard var argument = arguments.baseAddress, var parameter = parameters.baseAddress else { return true }
        let end = argument + arguments.count
        while argument < end {
            guard argument.pointee.kind == parameter.pointee.rawKind else { return false }
            (argument, parameter) = (argument + 1, parameter + 1)
        }
        return true
    }

    /// The kind that marks an element to which no entry was assigned; not the kind of any value.
    static var isMissing: UInt32 { PLUGIN_KIND_NONE }

    /// Converts a value to the declared kind, if nothing is lost. If the parameter is optional, null counts as missing.
    @inline(__always)
    func convert(_ value: plugin_value, _ parameter: Parameter) throws(PluginError) -> plugin_value {
        let kind = Value.Kind(raw: value.kind)
        if kind == parameter.kind || parameter.kind == .any { return value }
        switch (kind, parameter.kind) {
        case (.null, _) where !parameter.isRequired: return parameter.defaultValue
        case (.int, .double):
            if let exact = Double(exactly: value.as.integer) { return plugin_value_double(exact) }
        case (.double, .int):
            if let exact = Int64(exactly: value.as.real) { return plugin_value_int(exact) }
        default: break
        }
        throw .mistypedParameter(parameter, value, self)
    }
}

extension UnsafeBufferPointer<Endpoint.Parameter> {
    /// Returns the position of the parameter with this name. Tries `index` first, because callers mostly pass
    /// parameters in declared order.
    @inline(__always)
    func position(of key: plugin_string, near index: Int) -> Int? {
        if index < count, self[index].isNamed(key) { return index }
        return indices.first { self[$0].isNamed(key) }
    }
}

extension Value.Kind {
    /// The number of the kind in the binary interface; `nil` for `any`.
    var raw: UInt32? { (PLUGIN_KIND_NULL...PLUGIN_KIND_OBJECT).first { Value.Kind(raw: $0) == self } }

    /// Creates the kind with this number in the binary interface; `nil` for an unknown number.
    @inline(__always)
    init?(raw: UInt32) {
        switch raw {
        case PLUGIN_KIND_NULL: self = .null
        case PLUGIN_KIND_BOOL: self = .bool
        case PLUGIN_KIND_INT: self = .int
        case PLUGIN_KIND_DOUBLE: self = .double
        case PLUGIN_KIND_STRING: self = .string
        case PLUGIN_KIND_BYTES: self = .bytes
        case PLUGIN_KIND_LIST: self = .list
        case PLUGIN_KIND_MAP: self = .map
        case PLUGIN_KIND_OBJECT: self = .object
        default: return nil
        }
    }
}
