import Foundation
import PluginABI
import PluginFile
import Synchronization
import Testing

@Suite struct TypeDerivationTests {
    /// Derives the types of a module.
    private func derive(_ manifest: Manifest, without: String = "") throws -> (manifest: Value, notes: [String]) {
        let module = manifest.export()
        let derivation = try #require(plugin_type_derivation_of(module)).pointee
        let types = without.withPluginString { derivation.derive(module.pointee.data, $0, nil, nil) }
        // A host accepts the manifest.
        _ = try Bytes(types.manifest.text.utf8).withUnsafeBytes { try ModuleManifest(parsing: $0, abiMinor: 0) }
        return (
            try JSONDecoder().decode(Value.self, from: Data(types.manifest.text.utf8)),
            types.notes.text.split(separator: "\n").map(String.init)
        )
    }

    /// Derives what an action that returns a value of this type declares.
    private func derive<R: ActionResult>(_ type: R.Type) throws -> (result: String?, values: String, notes: [String]) {
        let derived = try derive(
            Manifest("M", version: "1.0.0") {
                Target("T") { Action("a", .reply(R.self)) { _ in } }
                ObjectType("Cursor", Cursor.self) {}
                ObjectType("Twice", Int.self) {}
                ObjectType("TwiceMore", Int.self) {}
                ObjectType("Object", Text.self) {}
            })
        let values = derived.manifest["values"]?.list?.map { value in
            let fields = value["fields"]?.list?.map { "\($0.text("name")): \($0.text("type"))" }
            return
                "\(value.text("name"))(\((fields ?? value["cases"]?.list?.map(\.json) ?? []).joined(separator: ", ")))"
        }
        return (
            derived.manifest["targets"]?[0]?["actions"]?[0]?["result"]?.string, (values ?? []).joined(separator: " "),
            derived.notes
        )
    }

    private struct Cursor: Sendable {}
    private struct Text: Sendable {}

    struct Flat: ValueCodable {
        var flag: Bool
        var number: Int8
        var real: Float
        var text: String
        var bytes: Bytes
        var anything: Value
        var maybe: Double?
    }

    enum Plain: String, ValueCodable { case a = "A" }
    enum Level: UInt8, ValueCodable, CaseIterable {
        case low = 1
        case high = 200
    }
    enum Word: String, ValueCodable, CaseIterable {
        case red
        case dark = "dark blue"
    }
    enum Payload: ValueCodable {
        case none
        case some(String)
    }

    struct Nested: ValueCodable {
        enum CodingKeys: String, CodingKey {
            case plain = "plain-one"
            case words, levels, inner, foreign, when
        }
        var plain: Plain
        var words: [Word]
        var levels: [String: Level]?
        var inner: Inner
        var foreign: UUID
        var when: Date
        var ignored = 1
        struct Inner: ValueCodable { var payload: Payload }
    }

    final class Tree: ValueCodable, Sendable {
        let children: [Tree]
        let parent: Tree?
        init() { (children, parent) = ([], nil) }
    }

    struct Wrapper: ValueCodable {
        var text: String
        init(from decoder: any Decoder) throws { text = try decoder.singleValueContainer().decode(String.self) }
    }

    struct Either: ValueCodable {
        var text: String
        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            text = try (try? container.decode(String.self)) ?? String(container.decode(Int.self))
        }
    }

    struct Converted: ValueCodable {
        enum CodingKeys: CodingKey { case length }
        var length: Int
        init(from decoder: any Decoder) throws {
            length = try decoder.container(keyedBy: CodingKeys.self).decode(String.self, forKey: .length).count
        }
    }

    struct Declared: ValueCodable, ValueTyped {
        static let valueType = ValueType.record(["word": .of(Word.self), "more": .optional(.list(.of(Declared.self)))])
        init(from decoder: any Decoder) throws { fatalError("It is only encoded.") }
    }

    struct Picky: ValueCodable {
        struct Part: Codable {
            init(from decoder: any Decoder) throws { throw PluginError("no", "Nothing is good enough.") }
        }
        var part: Part
        var rest: Int
    }

    struct Cycle: ValueCodable {
        var cycles: [Cycle]
        var part: Picky.Part
    }

    /// A chain of types around a type of which no value can be made.
    private struct Link<Next: Codable & Sendable>: ValueCodable { var next: Next }
    private struct Nothing: Codable {
        static let attempts = Mutex(0)
        init(from decoder: any Decoder) throws {
            Self.attempts.withLock { $0 += 1 }
            throw PluginError("no", "Nothing is good enough.")
        }
    }

    /// A chain of types that accept only the last of the texts, and decode the next type before the text.
    private struct Dated<Next: Codable & Sendable>: ValueCodable {
        var next: Next
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            next = try container.decode(Next.self, forKey: .next)
            guard try decoder.singleValueContainer().decode(String.self).hasPrefix("2000") else {
                throw PluginError("no", "That is no date.")
            }
        }
    }
    private struct Counted: Codable {
        static let made = Mutex(0)
        init(from decoder: any Decoder) throws {
            _ = try decoder.singleValueContainer().decode(String.self)
            Self.made.withLock { $0 += 1 }
        }
    }

    @Test func `a value of each type is made once, however deep it is nested`() throws {
        let links = try derive(Link<Link<Link<Link<Link<Link<Link<Link<Nothing>>>>>>>>.self)
        #expect(links.result == "map")
        // One attempt for each of the texts.
        #expect(Nothing.attempts.withLock { $0 } == 5)
        _ = try derive(Dated<Dated<Dated<Dated<Dated<Dated<Dated<Dated<Counted>>>>>>>>.self)
        #expect(Counted.made.withLock { $0 } == 1)
    }

    @Test func `records are what a decoder is asked for`() throws {
        let flat = try derive(Flat.self)
        #expect(flat.result == "Flat" && flat.notes.isEmpty)
        #expect(
            flat.values == "Flat(flag: bool, number: int, real: double, text: string, bytes: bytes, anything: any, "
                + "maybe: double?)")
        let nested = try derive([Nested]?.self)
        #expect(nested.result == "list<Nested>?" && nested.notes.isEmpty)
        #expect(
            nested.values == #"Word("red", {"name":"dark","value":"dark blue"}) "#
                + #"Level({"name":"low","value":1}, {"name":"high","value":200}) Inner(payload: map) "#
                + "Nested(plain-one: string, words: list<Word>, levels: map<Level>?, inner: Inner, foreign: string, "
                + "when: double)")
    }

    @Test func `a record can contain lists of itself`() throws {
        let tree = try derive(Tree.self)
        #expect(tree.result == "Tree" && tree.values == "Tree(children: list<Tree>, parent: map?)")
    }

    @Test func `types that decode themselves stay as they are, or declare what they are`() throws {
        #expect(try derive(Wrapper.self).result == "string")
        #expect(try derive(Either.self).result == nil)
        let converted = try derive(Converted.self)
        #expect(converted.result == "map" && converted.values.isEmpty)
        #expect(converted.notes.count == 1 && converted.notes[0].contains("“length” as String"))
        let declared = try derive(Declared.self)
        #expect(declared.result == "Declared")
        #expect(declared.values.hasSuffix("Declared(word: Word, more: list<Declared>?)"))
    }

    @Test func `a record stays a map if no value can be made for one of its parts`() throws {
        for type in [Picky.self, Cycle.self] as [any ActionResult.Type] {
            let derived = try derive(type)
            #expect(derived.result == "map" && derived.values.isEmpty)
            let reason = "the field “part” has the type Part, for which no sample value can be made"
            #expect(derived.notes.contains { $0.contains(reason) })
        }
    }

    @Test func `objects have the types that are declared for their instances`() throws {
        #expect(try derive(TypedObject<Cursor>.self).result == "Cursor")
        #expect(try derive([TypedObject<Cursor>].self).result == "list<Cursor>")
        #expect(try derive(TypedObject<Int>.self).result == "object")
        #expect(try derive(Object?.self).result == "object?")
        // The name of a kind denotes the kind.
        #expect(try derive(Bytes?.self).result == "bytes?")
    }

    @Test func `nothing is derived when a module is described`() throws {
        struct Trap: ValueCodable, CaseIterable {
            static var allCases: [Trap] { fatalError("all cases") }
            init(from decoder: any Decoder) throws { fatalError("init(from:)") }
        }
        let module = Manifest("M", version: "1.0.0") {
            Target("T") { Action("a", .required("trap", Trap.self)) { trap in trap } }
        }
        #expect(!module.export().pointee.manifest.text.contains("values"))
        let derived = try derive(module, without: String(reflecting: Trap.self))
        #expect(derived.notes.count == 1 && derived.notes[0].hasPrefix("Trap has no type"))
    }
}

extension Value {
    fileprivate func text(_ key: String) -> String { self[key]?.string ?? "" }
}
