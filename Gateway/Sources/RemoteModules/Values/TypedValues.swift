import Foundation
import PluginABI

/// The records of a module, by their names: the types of their fields, by their names.
typealias Records = [String: [String: String]]

/// Creates values of declared types from JSON, which has no bytes, and does not distinguish 3 from 3.0.
struct TypedValues: Sendable {
    let records: Records

    /// Returns a value converted to its declared type. A value that does not fit the type is returned unchanged.
    ///
    /// - Parameter type: The type, as it is written in a manifest: `list<bytes>`.
    func value(_ value: Value, of type: String) -> Value {
        if type.hasSuffix("?") { return value.isNull ? value : self.value(value, of: String(type.dropLast())) }
        if type.hasPrefix("list<"), type.hasSuffix(">"), let values = value.list {
            let element = String(type.dropFirst(5).dropLast())
            return .list(values.map { self.value($0, of: element) })
        }
        if type.hasPrefix("map<"), type.hasSuffix(">"), let entries = value.map {
            let element = String(type.dropFirst(4).dropLast())
            return .map(entries.mapValues { self.value($0, of: element) })
        }
        switch (type, value) {
        case ("bytes", .string(let text)): return Data(base64Encoded: text).map { .bytes(Bytes($0)) } ?? value
        case ("double", .int(let number)): return .double(Double(number))
        // Numbers that JSON cannot express are sent as text.
        case ("double", .string("inf")): return .double(.infinity)
        case ("double", .string("-inf")): return .double(-.infinity)
        case ("double", .string("nan")): return .double(.nan)
        case (_, .map(let entries)):
            guard let fields = records[type] else { return value }
            var result = entries
            for (name, field) in fields { if let entry = entries[name] { result[name] = self.value(entry, of: field) } }
            return .map(result)
        default: return value
        }
    }

    /// Checks that a value can be sent as JSON without being changed.
    ///
    /// - Parameters:
    ///   - type: The declared type of the parameter.
    ///   - name: The name of the parameter.
    /// - Throws: `notRepresentable`.
    static func check(_ value: Value, of type: String, _ name: String) throws(PluginError) {
        if case .bytes = value, type == "bytes" || type == "bytes?" { return }
        try checkElement(value, name)
    }

    private static func checkElement(_ value: Value, _ name: String) throws(PluginError) {
        switch value {
        case .object:
            throw .unrepresentable(
                "The parameter “\(name)” contains an object, which cannot leave the program. Only a callback for a parameter of "
                    + "the kind object can be sent to another host.")
        case .bytes:
            throw .unrepresentable(
                "The parameter “\(name)” contains bytes, which can be sent to another host only as a parameter of the kind "
                    + "bytes, not within a list or map, or for a parameter of another kind.")
        case .double(let number) where !number.isFinite:
            throw .unrepresentable("The parameter “\(name)” contains \(number), for which JSON has no number.")
        case .list(let values): for value in values { try checkElement(value, name) }
        case .map(let entries): for value in entries.values { try checkElement(value, name) }
        default: break
        }
    }
}
