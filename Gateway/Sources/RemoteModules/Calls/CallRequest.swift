import PluginABI

/// A call as a request: the parameters in the query and the body.
struct CallRequest: Sendable {
    /// The path and the query that follow the URL of the other host.
    private(set) var path: String
    private(set) var body: [UInt8] = []
    private(set) var contentType = "application/json"
    /// The callbacks, by the names of their events.
    private(set) var callbacks: [String: Object] = [:]

    /// - Parameter arguments: The arguments in declared order, as an action receives them, followed by the rest if the
    ///   action has one.
    /// - Throws: `notRepresentable` if they cannot be sent.
    init(_ target: String, _ action: OfferedTarget.Action, _ arguments: [Value]) throws(PluginError) {
        // The names have been checked, and contain no characters with a meaning in a URL.
        path = "/call/\(target)/\(action.name)"
        var entries: [(parameter: OfferedTarget.Parameter, value: Value)] = []
        for (number, parameter) in action.parameters.enumerated() where number < arguments.count {
            let value = arguments[number]
            if parameter.isCallback, let callback = value.object {
                let name = "c\(number)"
                callbacks[name] = callback
                entries.append((parameter, .string(name)))
            } else if !value.isNull || parameter.isRequired {
                try TypedValues.check(value, of: parameter.type, parameter.name)
                entries.append((parameter, value))
            }
        }
        var rest: [String: Value] = [:]
        if action.hasRest, arguments.count > action.parameters.count {
            rest = arguments[action.parameters.count].map ?? [:]
            for (name, value) in rest { try TypedValues.check(value, of: "any", name) }
        }
        if rest.isEmpty, let bytes = Self.bytes(in: entries.map(\.value)),
            action.parameters.count(where: \.isBytes) == 1, let query = Self.query(entries)
        {
            (contentType, path) = ("application/octet-stream", path + query)
            body = bytes.withUnsafeBytes { Array($0) }
            return
        }
        for (parameter, value) in entries { rest[parameter.name] = value }
        body = Array(Value.map(rest).json.utf8)
    }

    /// Returns the bytes, if there are any among the values.
    private static func bytes(in values: [Value]) -> Bytes? {
        for case .bytes(let bytes) in values { return bytes }
        return nil
    }

    /// Returns the parameters other than bytes as the query of a URL; `nil` if they are not all short text and numbers.
    private static func query(_ entries: [(parameter: OfferedTarget.Parameter, value: Value)]) -> String? {
        var query = ""
        for (parameter, value) in entries where !parameter.isBytes {
            let text: String
            switch (parameter.type.hasSuffix("?") ? String(parameter.type.dropLast()) : parameter.type, value) {
            case ("string", .string(let string)) where string.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }):
                text = string
            case ("int", .int), ("double", .double), ("double", .int), ("bool", .bool): text = value.json
            default: return nil
            }
            query += (query.isEmpty ? "?" : "&") + parameter.name + "=" + escaped(text)
            guard query.utf8.count <= 4096 else { return nil }
        }
        return query
    }

    private static func escaped(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case 48...57, 65...90, 97...122, 45, 46, 95, 126: bytes.append(byte)
            default: bytes += [37, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
