import PluginABI

// Binding of the parameters of an action with a rest. The rest is its last argument: a map of the named parameters that
// the action does not declare, never null.

extension Endpoint {
    /// Assigns the parameters of a request to the declared ones, as ``bind(_:to:)`` does, and collects the others in
    /// the rest.
    ///
    /// - Parameter arguments: Uninitialised memory for the declared parameters and the rest.
    /// - Returns: The memory of the rest, which must be deallocated after the call; `nil` if the rest is empty.
    @inline(never)
    func bindWithRest(
        _ entries: UnsafeBufferPointer<plugin_entry>, to arguments: UnsafeMutableBufferPointer<plugin_value>
    ) throws(PluginError) -> UnsafeMutablePointer<plugin_entry>? {
        arguments.initialize(repeating: plugin_value(kind: Self.isMissing, count: 0, as: .init()))
        var rest: [plugin_entry] = []
        var position = 0
        for (index, entry) in entries.enumerated() {
            if entry.key.count != 0 {
                try bind(entry, near: index, to: arguments, or: &rest, isNested: false)
            } else if position < parameters.count {
                guard arguments[position].kind == Self.isMissing else {
                    throw .givenTwice(parameters[position].name, self)
                }
                arguments[position] = try convert(entry.value, parameters[position])
                position += 1
            } else {
                guard position == parameters.count else { throw .tooManyArguments(entries.count, self) }
                // Of entries with equal keys in a map, the last one counts; of parameters with equal names, the first
                // one.
                for entry in try entry.value.entriesOfRest(of: self).reversed() {
                    try bind(entry, near: 0, to: arguments, or: &rest, isNested: true)
                }
                position += 1
            }
        }
        for index in parameters.indices where arguments[index].kind == Self.isMissing {
            if parameters[index].isRequired { throw .missingParameter(parameters[index], self) }
            arguments[index] = parameters[index].defaultValue
        }
        let memory = rest.withoutDuplicates.copied()
        arguments[parameters.count] = plugin_value_map(memory?.baseAddress, UInt32(memory?.count ?? 0))
        return memory?.baseAddress
    }

    /// Binds a named parameter to its argument, or adds it to the rest. A parameter that was given before is ignored.
    ///
    /// - Parameter isNested: Whether the parameter is an entry of a map that was passed as the rest.
    private func bind(
        _ entry: plugin_entry, near index: Int, to arguments: UnsafeMutableBufferPointer<plugin_value>,
        or rest: inout [plugin_entry], isNested: Bool
    ) throws(PluginError) {
        if let found = parameters.position(of: entry.key, near: index) {
            guard arguments[found].kind == Self.isMissing else { return }
            arguments[found] = try convert(entry.value, parameters[found])
            return
        }
        guard entry.key.count > 0, !entry.key.isReserved else { throw .unknownParameter(entry.key.text, self) }
        if !isNested { try entry.value.checkContents(depth: 1) }
        rest.append(entry)
    }

    /// Whether a caller may give a parameter of this name: it is declared, or would be a part of the rest.
    func accepts(_ name: plugin_string) -> Bool {
        parameters.position(of: name, near: 0) != nil || (hasRest && !name.isReserved)
    }
}

extension plugin_value {
    /// Returns the entries of a rest that is given by position: a map, or null for none.
    ///
    /// - Throws: `mistypedParameter` for any other value.
    func entriesOfRest(of endpoint: Endpoint) throws(PluginError) -> UnsafeBufferPointer<plugin_entry> {
        switch kind {
        case PLUGIN_KIND_MAP: return UnsafeBufferPointer(start: self.as.map, count: Int(count))
        case PLUGIN_KIND_NULL: return UnsafeBufferPointer(start: nil, count: 0)
        default: throw .mistypedRest(self, endpoint)
        }
    }
}

extension [plugin_entry] {
    /// The first entry of each name.
    fileprivate var withoutDuplicates: [plugin_entry] {
        guard count > 1 else { return self }
        var names: Set<String> = []
        return filter { names.insert($0.key.text).inserted }
    }

    /// Returns a copy of the entries in memory of its own, if there are any.
    fileprivate func copied() -> UnsafeMutableBufferPointer<plugin_entry>? {
        guard !isEmpty else { return nil }
        let copy = UnsafeMutableBufferPointer<plugin_entry>.allocate(capacity: count)
        _ = copy.initialize(from: self)
        return copy
    }
}
