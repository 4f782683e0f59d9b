import CPluginABI
import Foundation
import PluginABI
import Testing

@testable import PluginFile
@testable import TestSupport

@Suite struct ModuleManifestTests {
    @Test func `A full manifest is read`() throws {
        let manifest = try parse(
            """
            {"name":"ModuleA","version":"1.0.0-rc.1","summary":"s","concurrency":"serial",
             "targets":[{"name":"A","summary":"t","instance":"shared","concurrency":"concurrent",
               "actions":[{"name":"fetchDetail","summary":"a","async":true,"remote":true,"idempotent":true,
                  "parameters":[{"name":"key","type":"string","required":true,"summary":"p"},
                                {"name":"page","type":"int","default":1}],
                  "result":"map"}]}],
             "types":[{"name":"Cursor","summary":"c","actions":[{"name":"next"}]}],
             "hooks":["setUp","tearDown"]}
            """)
        #expect(manifest.name == "ModuleA" && manifest.version == SemanticVersion("1.0.0-rc.1"))
        #expect(manifest.concurrency == .serial && manifest.hooks == [.setUp, .tearDown])
        let target = try #require(manifest.targets.first)
        #expect(target.instance == .shared && target.concurrency == .concurrent)
        let action = try #require(target.actions.first)
        #expect(action.isAsync && action.isRemote && action.isIdempotent && action.result == .map)
        #expect(
            action.parameters == [
                .init(name: "key", type: .string, isRequired: true, summary: "p"),
                .init(name: "page", type: .int, defaultValue: .int(1)),
            ])
        #expect(manifest.types.first?.actions.first?.name == "next")
    }

    @Test func `Omitted keys have their defaults`() throws {
        let manifest = try parse(
            #"{"name":"M","version":"1.0.0","concurrency":"serial","targets":[{"name":"T","actions":[{"name":"a"}]}]}"#)
        let target = try #require(manifest.targets.first)
        #expect(target.instance == .none && target.concurrency == .serial && target.summary == "")
        #expect(target.actions == [.init(name: "a")])
        #expect(try parse(#"{"name":"M","version":"1.0.0"}"#).targets.isEmpty)
    }

    @Test func `Defaults are values of the declared type`() throws {
        let cases: [(String, String, Value)] = [
            ("bool", "true", true), ("int", "-5", -5), ("double", "1.5", 1.5), ("double", "2", .double(2)),
            ("string", #""ä\n""#, "ä\n"), ("bytes", #""AQI=""#, .bytes([1, 2])),
            ("list", #"[1,"a",null]"#, [1, "a", nil]),
            ("map", #"{"k":{"x":[]}}"#, ["k": ["x": []]]), ("any", "null", nil), ("any", "7", 7),
            ("int", "9223372036854775807", .int(.max)),
        ]
        for (type, json, value) in cases {
            let manifest = try parse(parameter(#""type":"\#(type)","default":\#(json)"#))
            #expect(manifest.targets[0].actions[0].parameters[0].defaultValue == value)
        }
    }

    @Test(arguments: [
        (#""type":"int","default":"x""#, "default is of type string, but its type is int"),
        (#""type":"int","default":1.5"#, "double"), (#""type":"int","default":9223372036854775808"#, "double"),
        (#""type":"bool","default":1"#, "its type is bool"), (#""type":"string","default":null"#, "its type is string"),
        (#""type":"bytes","default":"*""#, "base64"), (#""type":"object","default":1"#, "objects cannot have defaults"),
        (#""type":"int","required":true,"default":1"#, "required and has a default"),
        (#""type":"integer""#, "unknown type"), (#""type":"null""#, "for results only"),
        (#""required":true"#, "\"type\" is missing"),
        (#""type":"int","requird":true"#, #"unknown key "requird". Did you mean “required”?"#),
        (#""type":7"#, "\"type\" must be a string, not a number"), (#""type":"int","required":"yes""#, "true or false"),
    ])
    func `A wrong parameter is named with its target and action`(json: String, text: String) {
        let message = refusal(parameter(json))
        #expect(message.contains("target T, action a, parameter p"), "\(message)")
        #expect(message.contains(text), "\(message)")
    }

    @Test(arguments: [
        (#""targets":[{"name":"A"},{"name":"A"}]"#, "the target A is declared twice"),
        (#""targets":[{"name":"A","actions":[{"name":"x"},{"name":"x"}]}]"#, "target A: the action x is declared"),
        (#""types":[{"name":"A"},{"name":"A"}]"#, "the type A is declared twice"),
        (#""targets":[{"name":"A b"}]"#, "the name \"A b\" is not allowed"),
        (#""targets":[{"name":""}]"#, "not allowed"),
        (#""targets":[{"name":"1a"}]"#, "not allowed"), (#""targets":[{"name":"ä"}]"#, "not allowed"),
        (#""targets":[{"name":"a/b"}]"#, "not allowed"), (#""targets":[{"name":"a\u0000"}]"#, "not allowed"),
        (#""targets":[{}]"#, "target number 1: the key \"name\" is missing"),
        (#""targets":[7]"#, "object is expected, not a number"),
        (#""targets":{}"#, "\"targets\" must be a list, not an object"),
        (
            #""targets":[{"name":"A","actions":[{"name":"NativeX","remote":true}]}]"#,
            "action NativeX: it is declared remote"
        ),
        (
            #""targets":[{"name":"A","actions":[{"name":"x","demands":["login"]}]}]"#,
            "action x: it has \"demands\", which other programs must satisfy, but is not declared remote"
        ),
        (
            #""targets":[{"name":"A","actions":[{"name":"x","remote":true,"demands":["a b"]}]}]"#,
            "the name \"a b\" is not allowed"
        ),
        (#""targets":[{"name":"A","actions":[{"name":"x","remote":true,"demands":["a","a"]}]}]"#, "\"a\" twice"),
        (#""targets":[{"name":"A","actions":[{"name":"x","remote":true,"demands":[1]}]}]"#, "must be a list of words"),
        (#""types":[{"name":"A","actions":[{"name":"x","remote":true}]}]"#, "type A: the action x is declared remote"),
        (#""hooks":["setup"]"#, #"unknown hook "setup". Did you mean “setUp”?"#),
        (#""hooks":["init","init"]"#, "twice"),
        (#""hooks":[1]"#, "must be a string"), (#""target":[]"#, #"Did you mean “targets”?"#),
        (#""concurrency":"parallel""#, "Expected one of: concurrent, serial"),
        (#""targets":[{"name":"A","instance":"percall"}]"#, #"Did you mean “perCall”?"#),
    ])
    func `An error names what breaks the rules`(json: String, text: String) {
        let message = refusal(#"{"name":"M","version":"1.0.0",\#(json)}"#)
        #expect(message.contains(text), "\(message)")
    }

    @Test func `Name and version are required and checked`() {
        #expect(refusal(#"{"version":"1.0.0"}"#).contains("\"name\" is missing"))
        #expect(refusal(#"{"name":"M"}"#).contains("\"version\" is missing"))
        #expect(refusal(#"{"name":"M","version":"1.0"}"#).contains("not a semantic version"))
        let long = String(repeating: "a", count: 257)
        #expect(refusal(#"{"name":"\#(long)","version":"1.0.0"}"#).contains("not allowed"))
        #expect(refusal(#"{"name":"\#(long.dropFirst())","version":"1.0.0"}"#) == "")
    }

    @Test func `Unknown keys in the manifest of a newer module are skipped`() throws {
        let text =
            #"{"name":"M","version":"1.0.0","planets":[],"hooks":["warmUp","init"],"targets":[{"name":"T","x":1}]}"#
        #expect(refusal(text).contains("unknown key \"planets\""))
        let manifest = try parse(text, abiMinor: UInt16(PLUGIN_ABI_MINOR) + 1)
        #expect(manifest.hooks == [.`init`] && manifest.targets.count == 1)
    }

    @Test func `Text that is not JSON is refused, with the position`() {
        for text in ["", " ", "{", "{]", "nul", #"{"name":}"#, #"{"a":1}x"#, #"{"a":"\ud800"}"#, #"{"a":1e999}"#] {
            #expect(refusal(text) != "", "\(text)")
        }
        #expect(refusal("{\n  \"name\": x}").contains("a value is missing, at line 2, column 11"))
        #expect(refusal("[]").contains("object is expected, not a list"))
    }

    @Test func `Invalid UTF-8 is refused, with the position`() {
        let bytes = Array(#"{"name":""#.utf8) + [0xFF] + Array(#""}"#.utf8)
        #expect(refusal(bytes).contains("not valid UTF-8, at byte 9"))
    }

    @Test func `A size of more than 1 MiB is refused before anything is read`() {
        // An address that is not mapped: reading it would crash.
        let nowhere = UnsafeRawBufferPointer(start: UnsafeRawPointer(bitPattern: 4096), count: 64 << 20)
        let error = #expect(throws: PluginError.self) { try ModuleManifest(parsing: nowhere, abiMinor: 0) }
        #expect(error?.message.contains("67108864 bytes long") == true)
    }

    @Test func `Endless nesting is refused`() {
        for (open, close) in [("[", "]"), (#"{"a":"#, "}")] {
            let inner = String(repeating: open, count: 10_000)
            #expect(refusal(inner).contains("128 levels"))
            #expect(refusal(inner + "1" + String(repeating: close, count: 10_000)).contains("128 levels"))
        }
        let brackets = String(repeating: #"[\""#, count: 1000)
        #expect(refusal(#"{"name":"M","version":"1.0.0","summary":"\#(brackets)"}"#) == "")
    }

    @Test func `The published schema and the parser accept the same keywords`() throws {
        let path = URL(filePath: "\(headers)/manifest.schema.json")
        let schema = try #require(try JSONSerialization.jsonObject(with: Data(contentsOf: path)) as? [String: Any])
        let definitions = try #require(schema["$defs"] as? [String: [String: Any]])
        func words(_ value: [String: Any]?, _ path: String...) -> [String] {
            var value = value
            for key in path { value = value?[key] as? [String: Any] }
            return value?["enum"] as? [String] ?? []
        }
        #expect(definitions["hook"]?["enum"] as? [String] == ModuleManifest.Hook.allCases.map(\.rawValue))
        #expect(words(definitions["concurrency"]) == ModuleManifest.Concurrency.allCases.map(\.rawValue))
        #expect(
            words(definitions["target"], "properties", "instance") == ModuleManifest.Instance.allCases.map(\.rawValue))
        #expect(words(definitions["route"], "properties", "transition") == Transition.allCases.map(\.rawValue))
        #expect(words(definitions["kind"]) == Value.Kind.allCases.map(\.rawValue))
    }

    @Test func `An action and a subscription can have a rest, which is true or false`() throws {
        func action(_ rest: String) -> String {
            #"{"name":"M","version":"1.0.0","targets":[{"name":"T","actions":[{"name":"a"\#(rest)}]}],"#
                + #""events":[{"name":"e"\#(rest)}]}"#
        }
        for (text, hasRest) in [("", false), (#","rest":false"#, false), (#","rest":true"#, true)] {
            let manifest = try parse(action(text))
            #expect(manifest.targets[0].actions[0].hasRest == hasRest && manifest.events[0].hasRest == hasRest)
        }
        #expect(refusal(action(#","rest":1"#)).contains("target T, action a"))
        #expect(refusal(action(#","rest":"true""#)).contains("true or false"))
        #expect(refusal(#"{"name":"M","version":"1.0.0","interceptors":[{"name":"i","rest":true}]}"#).contains("rest"))
    }

    @Test func `A route maps groups without a name to parameters, by their numbers`() throws {
        func route(_ groups: String) -> String {
            #"{"name":"M","version":"1.0.0","targets":[{"name":"T","actions":[{"name":"a"}]}],"#
                + #""routes":[{"pattern":"app://x/*","action":"T/a","groups":\#(groups)}]}"#
        }
        #expect(try parse(route(#"{"0":"path","12":"b"}"#)).routes[0].groups == [0: "path", 12: "b"])
        #expect(try parse(route("{}")).routes[0].groups.isEmpty)
        for groups in [#"{"x":"a"}"#, #"{"-1":"a"}"#, #"{"00":"a"}"#, #"{"+1":"a"}"#, #"{"0":1}"#, #"["a"]"#] {
            #expect(refusal(route(groups)).contains("groups"), "\(groups)")
        }
    }

    // MARK: -

    private func parameter(_ json: String) -> String {
        #"{"name":"M","version":"1.0.0","targets":[{"name":"T","#
            + #""actions":[{"name":"a","parameters":[{"name":"p",\#(json)}]}]}]}"#
    }

    private func parse(_ text: some Collection<UInt8>, abiMinor: UInt16 = 0) throws -> ModuleManifest {
        try Array(text).withUnsafeBytes { try ModuleManifest(parsing: $0, abiMinor: abiMinor) }
    }

    private func parse(_ text: String, abiMinor: UInt16 = 0) throws -> ModuleManifest {
        try parse(Array(text.utf8), abiMinor: abiMinor)
    }

    private func refusal(_ text: String) -> String { refusal(Array(text.utf8)) }

    /// The message of the error; empty if there is none.
    private func refusal(_ text: [UInt8]) -> String {
        do {
            _ = try parse(text)
            return ""
        } catch {
            #expect((error as? PluginError)?.code == .invalidManifest)
            return (error as? PluginError)?.message ?? ""
        }
    }
}
