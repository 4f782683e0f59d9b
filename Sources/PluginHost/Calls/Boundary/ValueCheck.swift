import PluginABI

// Values from modules are checked once, here, so that no other code has to: kinds exist, strings are UTF-8, pointers
// are not null, nesting is bounded, objects have a holder.

extension plugin_value {
    /// Checks the value and everything that it contains.
    ///
    /// - Throws: `invalidValue`, describing the mistake; the caller adds its position.
    @inline(__always)
    func check() throws(PluginError) {
        if kind <= PLUGIN_KIND_DOUBLE { return }
        try checkContents(depth: 0)
    }

    /// Checks a value that is nested in `depth` lists and maps, and everything that it contains.
    func checkContents(depth: Int) throws(PluginError) {
        guard depth < PLUGIN_DEPTH_MAX || (kind != PLUGIN_KIND_LIST && kind != PLUGIN_KIND_MAP) else {
            throw PluginError(.invalidValue, "Lists and maps are nested more than \(PLUGIN_DEPTH_MAX) levels deep.")
        }
        let count = Int(count)
        switch kind {
        case PLUGIN_KIND_NULL, PLUGIN_KIND_BOOL, PLUGIN_KIND_INT, PLUGIN_KIND_DOUBLE: break
        case PLUGIN_KIND_STRING: try plugin_string(bytes: self.as.string, count: UInt64(count)).check("A string")
        case PLUGIN_KIND_BYTES: try requirePointer(self.as.bytes != nil, "bytes")
        case PLUGIN_KIND_LIST:
            try requirePointer(self.as.list != nil, "values")
            for index in 0..<count { try self.as.list[index].checkContents(depth: depth + 1) }
        case PLUGIN_KIND_MAP:
            try requirePointer(self.as.map != nil, "entries")
            for index in 0..<count {
                try self.as.map[index].key.check("A key of a map")
                try self.as.map[index].value.checkContents(depth: depth + 1)
            }
        case PLUGIN_KIND_OBJECT:
            guard ObjectTable.isHeld(self.as.object) else {
                throw PluginError(.invalidValue, "The object \(self.as.object) does not exist, or it has no holder.")
            }
        default:
            throw PluginError(
                .invalidValue, "A value has the unknown kind \(kind); valid are 0 to \(PLUGIN_KIND_OBJECT).")
        }
    }

    /// Whether the value passes the check.
    @inline(__always)
    var isSound: Bool {
        do throws(PluginError) { try check() } catch { return false }
        return true
    }

    private func requirePointer(_ isThere: Bool, _ what: String) throws(PluginError) {
        guard isThere || count == 0 else {
            throw PluginError(.invalidValue, "A value states a count of \(count) \(what) but has a null pointer.")
        }
    }
}

extension UnsafeBufferPointer<plugin_value> {
    /// Whether all values pass the check.
    var areSound: Bool {
        for index in indices where !self[index].isSound { return false }
        return true
    }
}

extension plugin_string {
    /// Whether the string is empty, or has a pointer and an allowed count.
    @inline(__always)
    var isThere: Bool { count == 0 || bytes != nil && count <= UInt32.max }

    /// Checks the count and the pointer, and that the bytes are valid UTF-8.
    func check(_ what: String) throws(PluginError) {
        guard count > 0 else { return }
        guard let bytes else {
            throw PluginError(.invalidValue, "\(what) states a count of \(count) bytes but has a null pointer.")
        }
        guard count <= UInt32.max else {
            throw PluginError(
                .invalidValue, "\(what) states a count of \(count) bytes; at most \(UInt32.max) are allowed.")
        }
        // ASCII, eight bytes at a time; from the first other byte on, the standard library's validation.
        let start = UnsafeRawPointer(bytes)
        let count = Int(count)
        var offset = 0
        while offset &+ 8 <= count,
            start.loadUnaligned(fromByteOffset: offset, as: UInt64.self) & 0x8080_8080_8080_8080 == 0
        { offset &+= 8 }
        if offset &+ 8 > count, start.tail(from: offset, to: count) & 0x8080_8080_8080_8080 == 0 { return }
        while offset < count, start.load(fromByteOffset: offset, as: UInt8.self) < 0x80 { offset &+= 1 }
        let rest = UnsafeBufferPointer(
            start: (start + offset).assumingMemoryBound(to: UInt8.self), count: count - offset)
        do {
            _ = try UTF8Span(validating: Span(_unsafeElements: rest))
        } catch {
            throw PluginError(
                .invalidValue, "\(what) is not valid UTF-8, at byte \(offset + error.byteOffsets.lowerBound).")
        }
    }
}

extension plugin_request {
    /// The maximum number of parameters: more than any caller needs, and less than most counts that are garbage.
    static var parametersMax: UInt64 { 1 << 20 }

    /// Whether the request passes all checks.
    var isSound: Bool {
        do throws(PluginError) { try checkValues() } catch { return false }
        return true
    }

    /// Whether the request passes all checks; for a call by target and action, or of a bound action, all but those of
    /// the names. If the action is found, its target and action are names that a module has declared, and so are the
    /// names of parameters that match the declaration. Code that does not find the action checks everything
    /// (``checkValues()``), and code that accepts other parameters checks their names (``checkKeys()``).
    @inline(__always)
    var isSoundButForNames: Bool {
        guard address == PLUGIN_ADDRESS_BOUND || address == PLUGIN_ADDRESS_ACTION, size >= Self.smallestSize,
            address == PLUGIN_ADDRESS_BOUND || target.isThere && action.isThere,
            parameter_count <= Self.parametersMax, parameter_count == 0 || parameters != nil
        else { return isSound }
        for index in 0..<Int(truncatingIfNeeded: parameter_count) {
            guard parameters[index].key.isThere, parameters[index].value.isSound else { return false }
        }
        return true
    }

    /// Checks the names of the parameters.
    func checkKeys() throws(PluginError) {
        for index in 0..<Int(parameter_count) { try parameters[index].key.check("The name of a parameter") }
    }

    private static var smallestSize: UInt32 { UInt32(MemoryLayout<plugin_request>.size) }

    /// Checks a request of a module.
    func checkValues() throws(PluginError) {
        guard size >= Self.smallestSize else {
            throw PluginError(
                .invalidValue, "A request of \(size) bytes was passed; at least \(Self.smallestSize) are needed.")
        }
        if address != PLUGIN_ADDRESS_BOUND {
            if address == PLUGIN_ADDRESS_SERVICE { try version.check("The version of the service") }
            if address == PLUGIN_ADDRESS_URL, target.count > URLText.lengths.upperBound {
                throw .tooLong(Int(clamping: target.count), URLText.lengths.upperBound)
            }
            if address != PLUGIN_ADDRESS_OBJECT { try target.check("The name of the target, or the URL,") }
            if address != PLUGIN_ADDRESS_URL { try action.check("The name of the action") }
        }
        guard parameter_count <= Self.parametersMax else {
            throw PluginError(
                .invalidValue,
                "The request states \(parameter_count) parameters; at most \(Self.parametersMax) are accepted.")
        }
        guard parameter_count == 0 || parameters != nil else {
            throw PluginError(
                .invalidValue, "The request states \(parameter_count) parameters but has a null pointer for them.")
        }
        try checkKeys()
        for index in 0..<Int(parameter_count) {
            do throws(PluginError) {
                try parameters[index].value.check()
            } catch {
                let key = parameters[index].key.text
                throw PluginError(
                    error.code,
                    "Parameter \(key.isEmpty ? "number \(index + 1)" : "“\(key.shortened)”"): \(error.message)")
            }
        }
    }
}
