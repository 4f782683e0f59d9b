import Foundation
import PluginABI
import Testing

@Suite struct ManifestTests {
    struct Everything: Module {
        static let manifest = Manifest("Everything", version: "1.2.3-rc.1") {
            Target("T") {
                Action("plain") { 1 }
                Action("nothing") {}
                Action("later") { () async in "x" }
                Action("replies", .reply(Int.self)) { reply in reply.resolve(1) }
                Action("remote", .context()) { _ in nil as String? }.remote().idempotent().summary("Far away.")
                Action("demanding") { 1 }.remote(requires: "login", "adult")
                Action(
                    "parameters", .required("a", Int.self, summary: "The first."),
                    .optional("b", String.self, default: "x\"y"), .optional("c", Bytes.self),
                    .optional("d", Double.self, default: 1), .optional("e", [String].self, default: ["z"]),
                    .optional("f", Bytes.self, default: [1, 2, 3]), .required("g", Callback.self),
                    .required("h", [String: Int].self)
                ) { _, _, _, _, _, _, _, _ in true }
            }
            .summary("All kinds.")
            Target("S", make: { 5 }) {
                Action("n", .instance()) { n in n }
            }
            .concurrency(.serial)
            Target("P", make: { 5 }) {
                Action("n", .instance()) { n in n }
            }
            .instancePerCall()
            ObjectType("O", Int.self) {
                Action("n", .instance()) { n in n }
            }
            Service("Plain", version: "1.0.0", target: "T")
            Service("Full", version: "1.0.0", target: "S", priority: 2, singleton: true).summary("s")
            On(.setUp) { _ in }
            On(.tearDown) { _ in }
            On(.initialize) { _ in try await Task.sleep(for: .milliseconds(1)) }
        }
        .summary("Has everything.").concurrency(.serial)
    }

    private let module = Everything.export()

    private var manifest: Value {
        get throws { try JSONDecoder().decode(Value.self, from: Data(module.pointee.manifest.text.utf8)) }
    }

    private func action(_ name: String) throws -> Value {
        let actions = try #require(try manifest["targets"]?[0]?["actions"]?.list)
        return try #require(actions.first { $0["name"] == .string(name) })
    }

    @Test func `Permissions and the demand to be isolated are in the manifest`() throws {
        let module = Manifest("Asking", version: "1.0.0") {
            Permission(toRead: "/srv/pictures", "Thumbnails are made from these pictures.")
            Permission(toWrite: "/srv/thumbnails", "")
            Permission(toConnectTo: 443, "Some pictures are elsewhere.")
            Permission(toListenOn: 8080, "")
            Permission(toStartProcesses: 2, "")
            Permission(toReadVariable: "API_KEY", "")
            Permission(toUseNetwork: "Names are resolved.")
            RequiresIsolation()
        }.export()
        let manifest = try JSONDecoder().decode(Value.self, from: Data(module.pointee.manifest.text.utf8))
        #expect(manifest["isolation"] == "required")
        let permissions = try #require(manifest["permissions"]?.list)
        #expect(permissions[0] == ["read": "/srv/pictures", "reason": "Thumbnails are made from these pictures."])
        #expect(permissions[1] == ["write": "/srv/thumbnails"])
        #expect(permissions[2]["connect"] == 443)
        #expect(permissions[3] == ["listen": 8080])
        #expect(permissions[4] == ["processes": 2])
        #expect(permissions[5] == ["environment": "API_KEY"])
        #expect(permissions[6]["network"] == true)
    }

    @Test(arguments: [true, false]) func `Manifests and targets can contain conditions and loops`(isLarge: Bool)
        throws
    {
        let module = Manifest("Made", version: "1.0.0") {
            for number in 0..<(isLarge ? 3 : 0) {
                Target("T\(number)") {
                    for action in 0..<number { Action("a\(action)") { action } }
                    if isLarge { Action("large") { true } } else { Action("small") { true } }
                }
            }
            switch isLarge {
            case true: ObjectType("O", Int.self) { if isLarge { Action("n", .instance()) { n in n } } }
            case false: Target("Empty") {}
            }
            [Service("S", version: "1.0.0", target: "T"), On(.setUp) { _ in }] as [any ManifestPart]
            if !isLarge { Subscribe { ["a", "b"].map { event in Action(event) {} } } }
        }.export()
        let functions = UnsafeBufferPointer(
            start: module.pointee.functions, count: Int(module.pointee.function_count))
        let expected =
            isLarge
            ? ["T0/large", "T1/a0", "T1/large", "T2/a0", "T2/a1", "T2/large", "O#n", "@setUp"] : ["@setUp", "!a", "!b"]
        #expect(functions.map(\.name.text) == expected)
        let manifest = try JSONDecoder().decode(Value.self, from: Data(module.pointee.manifest.text.utf8))
        #expect(manifest["targets"]?.list?.map { $0["name"] } == (isLarge ? ["T0", "T1", "T2"] : ["Empty"]))
        #expect((manifest["types"]?.list?.count ?? 0) == (isLarge ? 1 : 0))
    }

    @Test func `A reply handle makes an action asynchronous, however many inputs precede it`() throws {
        let module = Manifest("Replies", version: "1.0.0") {
            Target("T") {
                Action("1", .reply(Int.self)) { $0.resolve(1) }
                Action("2", .context(), .reply(Int.self)) { $1.resolve(2) }
                Action("3", .context(), .context(), .reply(Int.self)) { $2.resolve(3) }
                Action("4", .context(), .context(), .context(), .reply(Int.self)) { $3.resolve(4) }
                Action("5", .context(), .context(), .context(), .context(), .reply(Int.self)) { $4.resolve(5) }
                Action("6", .context(), .context(), .context(), .context(), .context(), .reply(Int.self)) {
                    $5.resolve(6)
                }
                Action(
                    "7", .context(), .context(), .context(), .context(), .context(), .context(), .reply(Int.self)
                ) { $6.resolve(7) }
                Action(
                    "8", .context(), .context(), .context(), .context(), .context(), .context(), .context(),
                    .reply(Int.self)
                ) { $7.resolve(8) }
            }
        }.export()
        let manifest = try JSONDecoder().decode(Value.self, from: Data(module.pointee.manifest.text.utf8))
        let actions = try #require(manifest["targets"]?[0]?["actions"]?.list)
        #expect(actions.map { $0["async"] } == Array(repeating: true, count: 8))
    }

    @Test func `A rest is a property of the action and not a parameter, wherever it is among the inputs`() throws {
        let module = Manifest("Rests", version: "1.0.0") {
            Target("T") {
                Action("last", .required("a", Int.self), .rest()) { a, rest in a + rest.count }
                Action("first", .rest(), .context(), .required("a", Int.self)) { rest, _, a in a + rest.count }
                Action("only", .rest()) { rest async in rest.count }
                Action("none", .required("rest", Int.self)) { rest in rest }
            }
            Subscribe { Action("e", .rest()) { _ in } }
        }.export()
        let manifest = try JSONDecoder().decode(Value.self, from: Data(module.pointee.manifest.text.utf8))
        let actions = try #require(manifest["targets"]?[0]?["actions"]?.list)
        #expect(actions.map { $0["rest"] } == [true, true, true, nil])
        #expect(actions.map { $0["parameters"]?.list?.count } == [1, 1, nil, 1])
        #expect(manifest["events"]?[0] == ["name": "e", "rest": true])
    }

    @Test func `Each description has its own functions`() {
        let other = Everything.export()
        #expect(other.pointee.manifest.text == module.pointee.manifest.text)
        #expect(other.pointee.function_count == module.pointee.function_count)
        for index in 0..<Int(other.pointee.function_count) {
            #expect(other.pointee.functions[index].name.text == module.pointee.functions[index].name.text)
            #expect(other.pointee.functions[index].data != module.pointee.functions[index].data)
        }
    }

    @Test func `The description has magic, length, version and toolchain`() {
        #expect(module.pointee.magic == UInt64(PLUGIN_ABI_MAGIC))
        #expect(module.pointee.size == 112 && module.pointee.abi_major == 1 && module.pointee.abi_minor == 0)
        #expect(module.pointee.toolchain.text.hasPrefix("swift "))
    }

    @Test func `The manifest states the name, version, summary, concurrency and hooks of the module`() throws {
        let manifest = try manifest
        #expect(manifest["name"] == "Everything" && manifest["version"] == "1.2.3-rc.1")
        #expect(manifest["summary"] == "Has everything." && manifest["concurrency"] == "serial")
        #expect(manifest["hooks"] == ["setUp", "tearDown", ["name": "init", "async": true]])
    }

    @Test func `An action is asynchronous if its closure is`() throws {
        #expect(try action("plain") == ["name": "plain", "result": "int"])
        #expect(try action("nothing") == ["name": "nothing", "result": "null"])
        #expect(try action("later") == ["name": "later", "async": true, "result": "string"])
        #expect(try action("replies")["async"] == true)
        #expect(try action("remote") == ["name": "remote", "remote": true, "idempotent": true, "summary": "Far away."])
        #expect(
            try action("demanding")
                == ["name": "demanding", "remote": true, "demands": ["login", "adult"], "result": "int"])
    }

    @Test func `Parameters are declared with names, types and defaults`() throws {
        let expected: Value = [
            ["name": "a", "type": "int", "required": true, "summary": "The first."],
            ["name": "b", "type": "string", "default": "x\"y"], ["name": "c", "type": "bytes"],
            ["name": "d", "type": "double", "default": 1], ["name": "e", "type": "list", "default": ["z"]],
            ["name": "f", "type": "bytes", "default": "AQID"], ["name": "g", "type": "object", "required": true],
            ["name": "h", "type": "map", "required": true],
        ]
        #expect(try action("parameters")["parameters"] == expected)
    }

    @Test func `Targets declare how their instances are made`() throws {
        let targets = try #require(try manifest["targets"]?.list)
        #expect(targets.map { $0["instance"]?.string } == [nil, "shared", "perCall"])
        #expect(targets.map { $0["concurrency"]?.string } == [nil, "serial", nil])
        #expect(targets[0]["summary"] == "All kinds.")
    }

    @Test func `Services declare what implements them`() throws {
        let expected: Value = [
            ["name": "Plain", "version": "1.0.0", "target": "T"],
            [
                "name": "Full", "version": "1.0.0", "target": "S", "priority": 2, "singleton": true, "summary": "s",
            ],
        ]
        #expect(try manifest["services"] == expected)
    }

    @Test func `Every action, type and hook has a function, and every instance a factory`() {
        let functions = UnsafeBufferPointer(
            start: module.pointee.functions, count: Int(module.pointee.function_count))
        #expect(
            Set(functions.map(\.name.text)) == [
                "T/plain", "T/nothing", "T/later", "T/replies", "T/remote", "T/demanding", "T/parameters", "S/n", "P/n",
                "O#n",
                "@setUp", "@tearDown", "@init",
            ])
        #expect(functions.count == 13)
        let factories = UnsafeBufferPointer(
            start: module.pointee.factories, count: Int(module.pointee.factory_count))
        #expect(factories.map(\.target.text) == ["S", "P"])
    }

    @Test func `Each export returns a new description`() {
        let other = Everything.export()
        #expect(other != module && other.pointee.data != module.pointee.data)
        #expect(other.pointee.manifest.text == module.pointee.manifest.text)
    }
}
