import Foundation
import PluginABI
import PluginFile

@testable import TestSupport

/// The article about the keys of the manifest, made from the JSON schema.
struct ManifestKeys {
    static let article = "\(repository)/Sources/PluginABI/PluginABI.docc/ManifestKeys.md"

    /// The definitions that are objects, with their headings, in the order of the article.
    private static let sections = [
        ("target", "Target"), ("action", "Action"), ("parameter", "Parameter"), ("type", "Object type"),
        ("value", "Record or enumeration"), ("route", "Route"), ("service", "Service"), ("event", "Subscription"),
        ("interceptor", "Interceptor"), ("requirement", "Requirement"), ("permission", "Permission"),
    ]

    private let schema: Value
    private let definitions: [String: Value]

    init() throws {
        let data = try Data(contentsOf: URL(filePath: "\(headers)/manifest.schema.json"))
        schema = try Value(jsonFile: Array(data), code: .invalidValue, what: "The schema")
        definitions = schema["$defs"]?.map ?? [:]
    }

    /// The names of the definitions that are objects with keys of their own.
    var objects: Set<String> { Set(definitions.filter { $0.value["properties"] != nil }.keys) }
    static var described: Set<String> { Set(sections.map(\.0)) }

    var text: String {
        var text = """
            # Keys of the manifest

            Every key that a manifest can have, with its type, its default and its meaning.

            ## Overview

            \(schema["description"]?.string ?? "") Modules in Swift do not write it: ``Module/manifest`` makes it.

            A type is \(typeDescription)

            `scripts/manifest-keys` makes this article from `manifest.schema.json`, which stands beside `plugin_abi.h` and
            checks manifests in editors. Unknown keys are errors. A name consists of letters, digits, `_`, `.` and `-`, has at
            most 256 characters, and begins with a letter or `_`.

            ## Manifest

            \(table(schema))

            """
        for (name, heading) in Self.sections {
            let definition = definitions[name] ?? [:]
            text += "\n## \(heading)\n\n"
            if let description = definition["description"]?.string { text += "\(cell(description))\n\n" }
            text += "\(table(definition))\n"
        }
        return text
    }

    /// The statement of the schema about types, as the rest of a sentence.
    private var typeDescription: String {
        let text = cell(definitions["valueType"]?["description"]?.string ?? "")
        return text.prefix(1).lowercased() + text.dropFirst()
    }

    /// Returns the table of the keys of an object: the required ones, then the others, each group sorted by name.
    private func table(_ object: Value) -> String {
        let required = Set((object["required"]?.list ?? []).compactMap(\.string))
        let properties = (object["properties"]?.map ?? [:]).sorted {
            (required.contains($0.key) ? 0 : 1, $0.key) < (required.contains($1.key) ? 0 : 1, $1.key)
        }
        let rows = properties.map { key, property in
            let standard = required.contains(key) ? "required" : fallback(property)
            return "| `\(key)` | \(type(property)) | \(standard) | \(cell(description(property))) |"
        }
        return (["| key | type | default | meaning |", "| --- | --- | --- | --- |"] + rows).joined(separator: "\n")
    }

    private func referred(_ property: Value) -> (name: String, definition: Value)? {
        guard let name = property["$ref"]?.string?.split(separator: "/").last.map(String.init) else { return nil }
        return definitions[name].map { (name, $0) }
    }

    private func description(_ property: Value) -> String {
        property["description"]?.string ?? referred(property)?.definition["description"]?.string ?? ""
    }

    private func fallback(_ property: Value) -> String {
        switch property["default"] ?? referred(property)?.definition["default"] {
        case nil, .string(""): ""
        case .string(let text): "`\(text)`"
        case let value?: "`\(value.json)`"
        }
    }

    private func type(_ property: Value) -> String {
        if let (name, definition) = referred(property) {
            if let (_, heading) = Self.sections.first(where: { $0.0 == name }) { return heading.lowercased() }
            if ["name", "version", "path"].contains(name) { return name }
            return name == "valueType" ? "type" : type(definition)
        }
        if let choices = property["enum"]?.list {
            return choices.map { "`\($0.string ?? "")`" }.joined(separator: ", ")
        }
        if property["const"] != nil { return "`true`" }
        if property["anyOf"] != nil {
            let all = alternatives(property)
            return all.dropLast().joined(separator: ", ") + " or " + (all.last ?? "")
        }
        if let first = property["allOf"]?[0] { return type(first) }
        switch property["type"]?.string {
        case "array": return "list of " + type(property["items"] ?? [:])
        case "integer":
            guard let low = property["minimum"]?.int, low > .min else { return "integer" }
            return (property["maximum"]?.int).map { "integer, \(low) to \($0)" } ?? "integer, \(low) or more"
        case let plain: return plain ?? "any value"
        }
    }

    /// Returns the alternative types that a value may have.
    private func alternatives(_ property: Value) -> [String] {
        let definition = referred(property)?.definition ?? property
        guard let choices = definition["anyOf"]?.list else { return [type(property)] }
        return choices.flatMap { alternatives($0) }
    }

    /// Returns a text for a cell of a table.
    private func cell(_ text: String) -> String {
        text.replacing("|", with: "\\|").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
    }
}
