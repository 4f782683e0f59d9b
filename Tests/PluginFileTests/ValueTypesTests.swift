import Foundation
import PluginABI
import Testing

@testable import PluginFile
@testable import TestSupport

@Suite struct ValueTypesTests {
    private func manifest(_ parts: String) throws(PluginError) -> ModuleManifest {
        try Bytes("{\"name\": \"M\", \"version\": \"1.0.0\", \(parts)}".utf8).withUnsafeBytes {
            text throws(PluginError) in
            try ModuleManifest(parsing: text, abiMinor: 0)
        }
    }

    private static let parts = """
        "values": [{"name": "Draft", "fields": [
            {"name": "title", "type": "string"}, {"name": "author", "type": "Author?"},
            {"name": "replies", "type": "list<Draft>"}]},
          {"name": "Author", "summary": "Who.", "fields": [{"name": "level", "type": "Level"}]},
          {"name": "Level", "cases": [1, {"name": "high", "value": 2}]}, {"name": "Order", "cases": ["title", "date"]}],
        "types": [{"name": "Editor", "actions": [{"name": "draft", "result": "Draft"}]}],
        "targets": [{"name": "T", "actions": [
          {"name": "a", "result": "map<list<Draft?>>?", "parameters": [
            {"name": "draft", "type": "Draft", "required": true}, {"name": "order", "type": "Order", "default": "date"},
            {"name": "editors", "type": "list<Editor>"}, {"name": "level", "type": "Level"}, {"name": "n", "type": "int"}]},
          {"name": "b", "result": "Editor"}, {"name": "c"}]}]
        """

    @Test func `types have the kinds that the host checks`() throws {
        let manifest = try manifest(Self.parts)
        let action = manifest.targets[0].actions[0]
        #expect(action.parameters.map(\.type) == [.map, .string, .list, .int, .int])
        #expect(
            action.parameters.map(\.declaredType.description) == ["Draft", "Order", "list<Editor>", "Level", "int"])
        #expect(action.resultType == .optional(.map(.list(.optional(.record("Draft"))))) && action.result == .any)
        #expect(manifest.targets[0].actions.dropFirst().map(\.result) == [.object, .any])
        #expect(manifest.values.all.map(\.name) == ["Draft", "Author", "Level", "Order"])
    }

    @Test(arguments: [
        (#""values": [{"name": "A"}]"#, "must have one of the two"),
        (#""values": [{"name": "A", "fields": [], "cases": ["x"]}]"#, "must have one of the two"),
        (#""values": [{"name": "int", "fields": []}]"#, "is the name of a kind"),
        (#""values": [{"name": "A", "fields": []}], "types": [{"name": "A"}]"#, "object type of the same name"),
        (#""values": [{"name": "A", "fields": []}, {"name": "A", "fields": []}]"#, "declared twice"),
        (#""values": [{"name": "A", "fields": [{"name": "x", "type": "B"}]}]"#, "value type A, field x: unknown type"),
        (#""values": [{"name": "Ab", "fields": [{"name": "x", "type": "ab"}]}]"#, "Did you mean “Ab”?"),
        (#""values": [{"name": "A", "fields": [{"name": "x", "type": "null"}]}]"#, "for results only"),
        (#""values": [{"name": "A", "fields": [{"name": "x", "type": "any?"}]}]"#, "is not a type"),
        (#""values": [{"name": "A", "fields": [{"name": "", "type": "int"}]}]"#, "1 to 256 bytes"),
        (
            #""values": [{"name": "A", "fields": [{"name": "x", "type": "int"}, {"name": "x", "type": "int"}]}]"#,
            "the field x is declared twice"
        ),
        (#""values": [{"name": "A", "fields": [{"name": "x", "type": "A?"}]}]"#, "contains itself"),
        (
            #""values": [{"name": "A", "fields": [{"name": "x", "type": "B"}]}, "#
                + #"{"name": "B", "fields": [{"name": "x", "type": "A"}]}]"#, "contains itself"
        ),
        (#""values": [{"name": "A", "cases": []}]"#, "at least one case"),
        (#""values": [{"name": "A", "cases": ["x", "x"]}]"#, "the case \"x\" is declared twice"),
        (#""values": [{"name": "A", "cases": ["x", 1]}]"#, "different kinds"),
        (#""values": [{"name": "A", "cases": [1.5]}]"#, "a string or a whole number"),
        (#""values": [{"name": "A", "cases": [{"name": "x"}]}]"#, "a string or a whole number"),
        (#""targets": [{"name": "T", "actions": [{"name": "a", "result": "list<int"}]}]"#, "is not a type"),
        (#""targets": [{"name": "T", "actions": [{"name": "a", "result": "list<null>"}]}]"#, "is not a type"),
        (#""targets": [{"name": "T", "actions": [{"name": "a", "result": "int??"}]}]"#, "is not a type"),
        (#""targets": [{"name": "T", "actions": [{"name": "a", "result": "Draft"}]}]"#, "unknown result \"Draft\""),
        (
            #""targets": [{"name": "T", "actions": [{"name": "a", "parameters": [{"name": "p", "type": "int?"}]}]}]"#,
            "write \"int\", without \"required\""
        ),
        (
            #""values": [{"name": "A", "cases": ["x"]}], "targets": [{"name": "T", "actions": [{"name": "a", "#
                + #""parameters": [{"name": "p", "type": "A", "default": "y"}]}]}]"#,
            "its default is “y”, and not one of “x”"
        ),
    ])
    func `the error says what is wrong with a type, and where`(parts: String, problem: String) throws {
        let error = #expect(throws: PluginError.self) { try manifest(parts) }
        #expect(error?.code == .invalidManifest && error?.message.contains(problem) == true, "\(error as Any)")
    }

    @Test func `types are bounded in depth, number and size`() throws {
        func result(_ depth: Int) -> String {
            let type = String(repeating: "list<", count: depth) + "int" + String(repeating: ">", count: depth)
            return "\"targets\": [{\"name\": \"T\", \"actions\": [{\"name\": \"a\", \"result\": \"\(type)\"}]}]"
        }
        _ = try manifest(result(15))
        #expect(throws: PluginError.self) { try manifest(result(16)) }
        #expect(throws: PluginError.self) { try manifest(result(100_000)) }

        func records(_ count: Int, fields: Int, _ type: (Int) -> String) -> String {
            let records = (0..<count).map { number in
                let fields = (0..<fields).map { "{\"name\": \"f\($0)\", \"type\": \"\(type(number))\"}" }
                return "{\"name\": \"R\(number)\", \"fields\": [\(fields.joined(separator: ", "))]}"
            }
            return "\"values\": [\(records.joined(separator: ", "))]"
        }
        _ = try manifest(records(1000, fields: 1) { $0 == 999 ? "int" : "R\($0 + 1)" })
        for (parts, problem) in [
            (records(1001, fields: 1) { _ in "int" }, "1001 types"),
            (records(1, fields: 257) { _ in "int" }, "257 fields"),
            (records(40, fields: 2) { $0 == 39 ? "int" : "R\($0 + 1)" }, "more than 4096 fields"),
        ] {
            let error = #expect(throws: PluginError.self) { try manifest(parts) }
            #expect(error?.message.contains(problem) == true, "\(error as Any)")
        }
    }

    @Test func `a value that is not of its type is described with the path`() throws {
        let manifest = try manifest(Self.parts)
        let action = manifest.targets[0].actions[0]
        func mismatch(_ value: Value) -> String? {
            manifest.values.mismatch(of: value, action.resultType, at: "result")
        }
        let draft: Value = ["title": "t", "replies": [], "author": ["level": 2], "more": 1]
        #expect(mismatch(nil) == nil && mismatch(["x": [draft, nil, ["title": "t", "replies": [draft]]]]) == nil)
        #expect(mismatch(1) == "result is of type int, not map<list<Draft?>>")
        #expect(mismatch(["x": [["title": "t"]]]) == "result[“x”][0].replies is missing")
        #expect(
            mismatch(["x": [["title": "t", "replies": [["title": 1, "replies": []]]]]])
                == "result[“x”][0].replies[0].title is of type int, not string")
        #expect(
            mismatch(["x": [["title": "t", "replies": [], "author": ["level": 3]]]])
                == "result[“x”][0].author.level is 3, and not one of 1, 2")
        #expect(
            manifest.values.mismatch(of: "x", action.parameters[1].declaredType, at: "order")
                == "order is “x”, and not one of “title”, “date”")
    }

    @Test func `a value is compared in as many steps as it has parts`() throws {
        let fields = (0..<256).map { "{\"name\": \"f\($0)\", \"type\": \"\($0 == 200 ? "int" : "list<int>?")\"}" }
        let manifest = try manifest(
            "\"values\": [{\"name\": \"Wide\", \"fields\": [\(fields.joined(separator: ", "))]}]")
        let type = DeclaredType.list(.record("Wide"))
        var check = TypeCheck(types: manifest.values)
        #expect(check.mismatch(of: .list(Array(repeating: ["f200": 1, "other": 2], count: 1000)), type) == nil)
        // For each record: the record itself, its required field, and the value of the field.
        #expect(check.steps == 1 + 3 * 1000)
        #expect(
            manifest.values.mismatch(of: [["f200": 1], ["f200": 1, "f255": [1, ""]]], type, at: "x")
                == "x[1].f255[1] is of type string, not int")
        #expect(manifest.values.mismatch(of: [["f0": 1]], type, at: "x") == "x[0].f200 is missing")
    }

    @Test func `the manifest of the article on types is accepted`() throws {
        let path = "\(repository)/Sources/PluginABI/PluginABI.docc/TypesInTheManifest.md"
        let text = try String(contentsOfFile: path, encoding: .utf8)
        let json = try #require(text.split(separator: "```json").last?.split(separator: "```").first)
        let manifest = try Bytes(json.utf8).withUnsafeBytes { try ModuleManifest(parsing: $0, abiMinor: 0) }
        #expect(manifest.targets[0].actions.map(\.resultType.description) == ["list<Draft>", "Editor"])
    }
}
