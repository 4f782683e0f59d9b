import Foundation
import PluginABI
import PluginHost
import Testing

@testable import PluginHostCLI
@testable import TestSupport

/// How parameters that are entered as text become values.
@Suite struct NamedValuesTests {
    private static let types: [String: Value.Kind] = [
        "s": .string, "i": .int, "d": .double, "f": .bool, "b": .bytes, "l": .list, "m": .map, "o": .object, "a": .any,
    ]

    @Test(
        arguments: [
            ("s=1", "1"), ("s=", ""), ("s=true", "true"), ("s=null", "null"), ("s=[1]", "[1]"), ("s=@me", "@me"),
            ("s=\"x\"", "\"x\""), ("s={\"a\":1}", "{\"a\":1}"), ("s=base64:AQID", "base64:AQID"),
            ("i=1", 1), ("i=+7", 7), ("i=007", 7), ("i=3.0", 3), ("i=1e3", 1000), ("i=3.5", 3.5), ("i=two", "two"),
            ("i=null", nil), ("d=1", 1.0), ("d=1e-3", 0.001), ("d=x", "x"), ("f=true", true), ("f=1", true),
            ("f=0", false), ("f=yes", "yes"), ("l=[1,\"a\"]", [1, "a"]), ("l=a", ["a"]), ("l=1", ["1"]),
            ("m={\"a\":1}", ["a": 1]), ("m=x", "x"), ("a=1", 1), ("a=x", "x"), ("a=\"1\"", "1"), ("a=@file", "@file"),
            ("other=1", 1), ("other=x", "x"), ("b=AQID", .bytes([1, 2, 3])), ("b=base64:AQID", .bytes([1, 2, 3])),
            ("b=base64:", .bytes([])), ("b=", .bytes([])),
        ] as [(String, Value)])
    func `Text becomes a value of the declared type, by the rules for URLs`(word: String, value: Value) throws {
        let name = String(word.prefix { $0 != "=" })
        #expect(try NamedValues([word]).typed(Self.types) == [name: value])
    }

    @Test func `The content of a file becomes bytes, wherever the file ends`() throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/icon @1=x.png"
        try writeFile(Data([0, 255, 10]), to: path)
        #expect(try NamedValues(["b=@\(path)"]).typed(Self.types) == ["b": .bytes([0, 255, 10])])
        try writeFile(Data(), to: path)
        #expect(try NamedValues(["b=@\(path)"]).typed(Self.types) == ["b": .bytes([])])
    }

    @Test func `Bytes that cannot be read are errors that name the parameter`() throws {
        let folder = try TemporaryFolder()
        func error(_ words: String...) -> PluginError? {
            #expect(throws: PluginError.self) { try NamedValues(words).typed(["b": .bytes, "c": .bytes]) }
        }
        let missing = error("b=@\(folder.path)/nothing")
        #expect(missing?.code == .unreadable && missing?.message.contains("No such file") == true)
        #expect(error("b=@\(folder.path)")?.message.contains("Is a directory") == true)
        for word in ["b=@", "b=no base64", "b=base64:@"] {
            #expect(error(word)?.code == .usage)
            #expect(error(word)?.message.contains("'b'") == true || error(word)?.message.contains("'b=") == true)
        }
        #expect(error("b=@/dev/zero")?.message.contains("at most 4194304 bytes") == true)
        let half = "\(folder.path)/half"
        try writeFile(Data(count: BytesOfParameters.limit / 2 + 1), to: half)
        #expect(throws: Never.self) { try NamedValues(["b=@\(half)"]).typed(["b": .bytes]) }
        #expect(error("b=@\(half)", "c=@\(half)")?.code == .usage)
    }

    @Test(
        arguments: [
            ("key=42", #" To pass text that is also JSON, write it as a JSON string: 'key="42"'."#),
            (#"key={"a":1}"#, #" To pass text that is also JSON, write it as a JSON string: 'key="{\"a\":1}"'."#),
            (#"key=["it's"]"#, #" To pass text that is also JSON, write it as a JSON string: 'key="[\"it'\''s\"]"'."#),
            ("key=text", ""), ("other=42", ""),
        ])
    func `The hint how to pass text that is also JSON is a word that a shell and the prompt read`(
        word: String, hint: String
    ) throws {
        let words = try NamedValues([word])
        #expect(words.hint("The parameter “key” of S/a is declared string; the int 42 was given.") == hint)
        guard let quoted = hint.split(separator: "JSON string: ").last?.dropLast(), !hint.isEmpty else { return }
        let read = try NamedValues(shellWords(String(quoted))).untyped["key"]
        #expect(read == .string(String(word.dropFirst("key=".count))))
    }
}
