import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import PluginHostCLI

@Suite struct RPCEndpointTests {
    private let endpoint = RPCEndpoint { method, parameters async throws(RPCError) in
        switch method {
        case "echo": parameters ?? nil
        case "fail": throw .host(PluginError("own", "It failed.", source: "A"))
        default: throw .unknownMethod("There is no method '\(method)'.")
        }
    }

    private func answer(_ line: String) async throws -> Value? {
        guard let text = await endpoint.answer(Array(line.utf8)) else { return nil }
        return try Value(json: text)
    }

    private func code(_ line: String) async throws -> Int? { try await answer(line)?["error"]?["code"]?.int }

    @Test func `a request is answered with its id`() async throws {
        let expected: Value = ["jsonrpc": "2.0", "id": "x", "result": ["a": 1]]
        #expect(
            try await answer(#"{"jsonrpc":"2.0","id":"x","method":"echo","params":{"a":1}}"#) == expected)
        #expect(try await answer(#"{"jsonrpc":"2.0","id":null,"method":"echo"}"#)?["result"] == .null)
    }

    @Test func `a notification gets no answer, not even an error`() async throws {
        #expect(try await answer(#"{"jsonrpc":"2.0","method":"echo"}"#) == nil)
        #expect(try await answer(#"{"jsonrpc":"2.0","method":"nothing"}"#) == nil)
    }

    @Test(arguments: ["{", "x", "{\"a\":1", ""]) func `what is no JSON is a parse error`(line: String) async throws {
        #expect(try await code(line) == -32700)
    }

    @Test func `a line that is no UTF-8 is a parse error`() async throws {
        let answer = await endpoint.answer([0x22, 0xFF, 0x22])
        #expect(answer?.contains("-32700") == true)
    }

    @Test(
        arguments: [
            "1", "\"x\"", "[]", "[1]", "{}", #"{"id":1,"method":"echo"}"#, #"{"jsonrpc":"1.0","id":1,"method":"echo"}"#,
            #"{"jsonrpc":"2.0","id":1}"#, #"{"jsonrpc":"2.0","id":1,"method":2}"#,
            #"{"jsonrpc":"2.0","id":[],"method":"echo"}"#, #"{"jsonrpc":"2.0","id":1,"method":"echo","params":3}"#,
        ])
    func `what is no request is an invalid request`(line: String) async throws {
        let answer = try await answer(line)
        let error = answer?.list?.first ?? answer
        #expect(error?["error"]?["code"] == -32600)
    }

    @Test func `an unknown method and a failing one are told apart`() async throws {
        #expect(try await code(#"{"jsonrpc":"2.0","id":1,"method":"nothing"}"#) == -32601)
        let error = try await answer(#"{"jsonrpc":"2.0","id":1,"method":"fail"}"#)?["error"]
        #expect(error == ["code": -32000, "message": "It failed.", "data": ["code": "own", "source": "A"]])
    }

    @Test func `a batch is answered as a whole, without its notifications`() async throws {
        let batch = (0..<40).map { #"{"jsonrpc":"2.0","id":\#($0),"method":"echo","params":[\#($0)]}"# }
        let text = "[" + (batch + [#"{"jsonrpc":"2.0","method":"echo"}"#]).joined(separator: ",") + "]"
        let answers = try await answer(text)?.list ?? []
        #expect(Set(answers.compactMap { $0["id"]?.int }) == Set(0..<40))
        #expect(answers.count == 40)
        #expect(try await answer(#"[{"jsonrpc":"2.0","method":"echo"}]"#) == nil)
    }

    @Test func `a batch that is too long is refused`() async throws {
        let text = "[" + Array(repeating: "1", count: RPCEndpoint.batchLimit + 1).joined(separator: ",") + "]"
        #expect(try await code(text) == -32600)
    }
}

@Suite struct ControlMethodsTests {
    private let methods = ControlMethods(service: StubService())

    @Test func `each method reaches the host with its parameters`() async throws {
        #expect(try await methods.handle("list", nil) == [["name": "A"]])
        let call: Value = ["target": "A", "action": "b", "parameters": ["x": 1], "timeout": 1.5]
        #expect(try await methods.handle("call", call) == ["A", "b", ["x": 1], 1.5])
        let service: Value = ["service": "S", "version": "1.0.0", "action": "b", "parameters": ["x": 1]]
        #expect(try await methods.handle("call", service) == ["S", "1.0.0", "b", ["x": 1]])
        #expect(try await methods.handle("call", ["service": "S", "action": "b"]) == ["S", nil, "b", [:]])
        #expect(try await methods.handle("open", ["url": "u"]) == ["u", [:], false])
        #expect(try await methods.handle("open", ["url": "u", "local": true]) == ["u", [:], true])
        #expect(try await methods.handle("services", nil) == [["name": "S"]])
        #expect(try await methods.handle("stats", nil) == [["action": "A/b"]])
        #expect(try await methods.handle("inspect", ["file": "f"]) == "f")
        #expect(try await methods.handle("list", ["all": true]) == ["generations": []])
        #expect(try await methods.handle("remove", ["name": "A", "dryRun": true]) == ["A", false, true])
        #expect(try await methods.handle("rollback", ["name": "A", "force": true]) == ["A", nil, true, false])
        #expect(
            try await methods.handle("rollback", ["name": "A", "version": "1.0.0"]) == ["A", "1.0.0", false, false])
        #expect(try await methods.handle("versions", ["name": "A"]) == ["A"])
        #expect(try await methods.handle("events", ["after": 7, "timeout": 2]) == [7, 2.0])
    }

    @Test(
        arguments: [
            ("call", nil), ("call", ["A", "b"]), ("call", ["target": "A"]), ("call", ["target": 1, "action": "b"]),
            ("call", ["target": "A", "action": "b", "parameters": []]),
            ("call", ["target": "A", "action": "b", "timeout": -1]),
            ("call", ["target": "A", "action": "b", "parametres": [:]]), ("open", ["url": "u", "local": 1]),
            ("list", ["x": 1]), ("remove", nil), ("rollback", ["name": "A", "version": 1]), ("events", ["after": "x"]),
        ] as [(String, Value?)])
    func `parameters that do not fit are refused`(method: String, parameters: Value?) async {
        let error = await #expect(throws: RPCError.self) { try await methods.handle(method, parameters) }
        #expect(error?.code == -32602)
    }

    @Test func `an unknown method is named, with a suggestion`() async {
        let error = await #expect(throws: RPCError.self) { try await methods.handle("lst", nil) }
        #expect(error?.code == -32601)
        #expect(error?.message == "There is no method 'lst'. Did you mean “list”?")
    }
}

/// Gives back what it is asked.
struct StubService: HostService {
    func routes() async throws(PluginError) -> Value { [] }

    func services() async throws(PluginError) -> Value { [["name": "S"]] }

    func statistics() async throws(PluginError) -> Value { [["action": "A/b"]] }

    func list() async throws(PluginError) -> Value { [["name": "A"]] }

    func generations() async throws(PluginError) -> Value { ["generations": []] }

    func remove(_ name: String, force: Bool, dryRun: Bool) async throws(PluginError) -> Value {
        [.string(name), .bool(force), .bool(dryRun)]
    }

    func rollback(_ name: String, to version: String?, force: Bool, dryRun: Bool) async throws(PluginError) -> Value {
        [.string(name), version.map { .string($0) } ?? .null, .bool(force), .bool(dryRun)]
    }

    func versions(_ name: String) async throws(PluginError) -> Value { [.string(name)] }

    func events(after number: Int?, timeout: Duration?) async throws(PluginError) -> Value {
        [number.map { .int($0) } ?? .null, timeout.map { .double($0 / .seconds(1)) } ?? .null]
    }

    func call(
        _ target: String, _ action: String, _ parameters: [String: Value], timeout: Duration?
    ) async throws(PluginError) -> Value {
        if target == "missing" { throw PluginError(.unknownTarget, "There is no target missing.") }
        return [.string(target), .string(action), .map(parameters), timeout.map { .double($0 / .seconds(1)) } ?? nil]
    }

    func callService(
        _ name: String, from version: String?, _ action: String, _ parameters: [String: Value], timeout: Duration?
    ) async throws(PluginError) -> Value {
        [.string(name), version.map(Value.string) ?? nil, .string(action), .map(parameters)]
    }

    func callObject(
        _ object: Int, _ action: String, _ parameters: [String: Value], timeout: Duration?
    ) async throws(PluginError) -> Value { [.int(object), .string(action), .map(parameters)] }

    func release(_ object: Int) async throws(PluginError) {}

    func open(
        _ url: String, _ parameters: [String: Value], isLocal: Bool, timeout: Duration?
    ) async throws(PluginError) -> Value { [.string(url), .map(parameters), .bool(isLocal)] }

    func post(
        _ event: String, _ parameters: [String: Value], sticky: Bool, timeout: Duration?
    ) async throws(PluginError) -> Value { [.string(event), .map(parameters), .bool(sticky)] }

    func inspect(_ file: String, timeout: Duration?) async throws(PluginError) -> Value { .string(file) }
}
