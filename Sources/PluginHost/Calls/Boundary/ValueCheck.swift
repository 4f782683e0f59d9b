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
    var isSound: Bool {
        if isEvidentlySound { return true }
        do throws(PluginError) { try check() } catch { return false }
        return true
    }

    /// Whether the value is a number, ASCII text or bytes, and passes the check. False for values that need a longer
    /// one.
    @inline(__always)
    fileprivate var isEvidentlySound: Bool {
        switch kind {
        case PLUGIN_KIND_STRING: plugin_string(bytes: self.as.string, count: UInt64(count)).isASCII
        case PLUGIN_KIND_BYTES: self.as.bytes != nil || count == 0
        default: kind <= PLUGIN_KIND_DOUBLE
        }
    }

    private func requirePointer(_ isThere: Bool, _ what: String) throws(PluginError) {
        guard isThere || count == 0 else {
            throw PluginError(.invalidValue, "A value states a count of \(count) \(what) but has a null pointer.")
        }
    }
}

extension UnsafeBufferPointer<plugin_value> {
    /// Whether all values pass the check. Most do evidently, and the function that finds this out needs no registers to
    /// be saved.
    @inline(never)
    var areSound: Bool {
        for index in indices where !self[index].isEvidentlySound { return areSoundOtherwise }
        return true
    }

    @inline(never)
    private var areSoundOtherwise: Bool { allSatisfy(\.isSound) }
}

extension plugin_string {
    /// Whether the string is empty, or has a pointer and an allowed count.
    @inline(__always)
    var isThere: Bool { count == 0 || bytes != nil && count <= UInt32.max }

    /// Whether the string has a pointer, and all bytes are ASCII.
    @inline(__always)
    fileprivate var isASCII: Bool {
        guard let start = UnsafeRawPointer(bytes) else { return false }
        let count = Int(truncatingIfNeeded: count)
        guard count >= 8 else { return start.tail(from: 0, to: count) & Self.notASCII == 0 }
        // The reads of the last bytes overlap those before.
        var bits: UInt64
        if count < 32 {
            bits = start.word(at: 0) | start.word(at: count &- 8)
            if count >= 16 { bits |= start.word(at: 8) | start.word(at: count &- 16) }
        } else {
            bits = start.words(at: count &- 32)
            var offset = 0
            while offset < count &- 32 {
                bits |= start.words(at: offset)
                offset &+= 32
            }
        }
        return bits & Self.notASCII == 0
    }

    /// The bits that are not set in eight bytes of ASCII.
    private static var notASCII: UInt64 { 0x8080_8080_8080_8080 }

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
        if isASCII { return }
        // From the first other byte on, the standard library's validation.
        let start = UnsafeRawPointer(bytes)
        let count = Int(count)
        var offset = 0
        while offset &+ 8 <= count, start.word(at: offset) & Self.notASCII == 0 { offset &+= 8 }
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

    /// Checks the names of the parameters.
    private func checkKeys() throws(PluginError) {
        for index in 0..<Int(parameter_count) { try parameters[index].key.check("The name of a parameter") }
    }

    fileprivate static var smallestSize: UInt32 { UInt32(MemoryLayout<plugin_request>.size) }

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

extension UnsafePointer<plugin_request> {
    /// Whether the request passes all checks; for a call by target and action, or of a bound action, all but those of
    /// the names and values. If the action is found, its target and action are names that a module has declared, and so
    /// are the names of parameters that match the declaration, whose values are checked when they are in order
    /// (`areSound`). Code that does not find the action, or accepts other parameters, checks everything
    /// (``plugin_request/checkValues()``). Until then, not even the pointers of names and values are checked: a name
    /// may only be compared with a declared one.
    ///
    /// The request is read in the units in which the caller has just written it; see
    /// ``UnsafeMutablePointer/initialize(byWordsOf:)``.
    @inline(never)
    var isSoundButForParameters: Bool {
        let isBound = pointee.address == PLUGIN_ADDRESS_BOUND
        guard isBound || pointee.address == PLUGIN_ADDRESS_ACTION, pointee.size >= plugin_request.smallestSize,
            isBound || pointee.target.isThere && pointee.action.isThere,
            pointee.parameter_count <= plugin_request.parametersMax,
            pointee.parameter_count == 0 || pointee.parameters != nil
        else { return isSound }
        return true
    }

    @inline(never)
    private var isSound: Bool { pointee.isSound }
}

extension UnsafeRawPointer {
    /// Returns the bits that are set in any of four words.
    @inline(__always)
    fileprivate func words(at offset: Int) -> UInt64 {
        word(at: offset) | word(at: offset &+ 8) | word(at: offset &+ 16) | word(at: offset &+ 24)
    }
}
