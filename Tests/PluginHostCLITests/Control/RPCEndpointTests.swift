import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import PluginHostCLI
@testable import TestSupport

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

    @Test(arguments: ["{", "x", "{\"a\":1", ""])
    func `text that is not JSON is a parse error`(line: String) async throws {
        #expect(try await code(line) == -32700)
    }

    @Test func `a line that is not UTF-8 is a parse error`() async throws {
        let answer = await endpoint.answer([0x22, 0xFF, 0x22])
        #expect(answer?.contains("-32700") == true)
    }

    @Test(
        arguments: [
            "1", "\"x\"", "[]", "[1]", "{}", #"{"id":1,"method":"echo"}"#, #"{"jsonrpc":"1.0","id":1,"method":"echo"}"#,
            #"{"jsonrpc":"2.0","id":1}"#, #"{"jsonrpc":"2.0","id":1,"method":2}"#,
            #"{"jsonrpc":"2.0","id":[],"method":"echo"}"#, #"{"jsonrpc":"2.0","id":1,"method":"echo","params":3}"#,
        ])
    func `JSON that is not a request is an invalid request`(line: String) async throws {
        let answer = try await answer(line)
        let error = answer?.list?.first ?? answer
        #expect(error?["error"]?["code"] == -32600)
    }

    @Test func `an unknown method and a failing one have different error codes`() async throws {
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

@Suite struct HostMethodTests {
    private let folder: TemporaryFolder
    private let service: LocalHost

    init() throws {
        folder = try TemporaryFolder()
        var configuration = PluginHost.Configuration(folders: [])
        configuration.stateFolder = folder.path
        service = LocalHost(configuration)
        try service.host.register(
            Manifest("A", version: "1.0.0") {
                Target("A") {
                    Action("b", .required("x", Int.self)) { x in x }.remote()
                    Action("secret") { "hidden" }
                }
                Service("S", version: "1.2.0", target: "A")
            })
        try service.start()
    }

    private func error(_ method: String, _ parameters: Value?) async -> RPCError? {
        await #expect(throws: RPCError.self) { try await service.answer(method, parameters) }
    }

    @Test func `each method reaches the host with its parameters`() async throws {
        defer { service.end() }
        #expect(try await service.answer("list", nil)[0]?["name"] == "A")
        #expect(try await service.answer("list", ["all": true])["retired"]?["count"] == 0)
        #expect(try await service.answer("routes", nil) == [])
        #expect(try await service.answer("services", [:])[0]?["name"] == "S")
        let call: Value = ["target": "A", "action": "b", "parameters": ["x": 1], "timeout": 1.5]
        #expect(try await service.answer("call", call) == 1)
        let named: Value = ["service": "S", "version": "1.0.0", "action": "b", "parameters": ["x": 2]]
        #expect(try await service.answer("call", named) == 2)
        #expect(try await service.answer("stats", nil).list?.contains { $0["action"] == "A/b" } == true)
        #expect(try await service.answer("open", ["url": "app://A/b?x=3"]) == 3)
        #expect(try await service.answer("open", ["url": "app://A/secret", "local": true]) == "hidden")
        #expect(try await service.answer("post", ["event": "something", "sticky": true])["delivered"] == 0)
        #expect(try await service.answer("versions", ["name": "A"]) == [])
        #expect(try await service.answer("events", ["after": 7, "timeout": 0.01])["last"] == 0)
    }

    @Test(
        arguments: [
            ("call", ["target": "missing", "action": "b"], "unknownTarget"),
            ("call", ["service": "S", "version": "2.0.0", "action": "b"], "unknownService"),
            ("call", ["object": 7, "action": "b"], "unknownObject"), ("release", ["object": 7], "unknownObject"),
            ("open", ["url": "app://A/secret"], "noRoute"), ("inspect", ["file": "/nonexistent.so"], "fileNotFound"),
            ("remove", ["name": "B", "dryRun": true], "unknownModule"),
            ("rollback", ["name": "B", "version": "1.0.0", "force": true], "noVersionKept"),
        ] as [(String, Value, Value)])
    func `an error of the host keeps its code`(method: String, parameters: Value, code: Value) async {
        defer { service.end() }
        let error = await error(method, parameters)
        #expect(error?.code == -32000 && error?.data?["code"] == code, "\(error?.data?.json ?? "")")
        #expect(error?.reported.code.rawValue == code.string)
    }

    @Test(
        arguments: [
            ("call", nil), ("call", ["A", "b"]), ("call", ["target": "A"]), ("call", ["target": 1, "action": "b"]),
            ("call", ["target": "A", "action": "b", "parameters": []]),
            ("call", ["target": "A", "action": "b", "timeout": -1]),
            ("call", ["target": "A", "action": "b", "parametres": [:]]), ("open", ["url": "u", "local": 1]),
            ("list", ["x": 1]), ("remove", nil), ("rollback", ["name": "A", "version": 1]), ("events", ["after": "x"]),
        ] as [(String, Value?)])
    func `invalid parameters are refused`(method: String, parameters: Value?) async {
        defer { service.end() }
        #expect(await error(method, parameters)?.code == -32602)
    }

    @Test func `an unknown method is named, with a suggestion`() async {
        defer { service.end() }
        let error = await error("lst", nil)
        #expect(error?.code == -32601)
        #expect(error?.message == "There is no method 'lst'. Did you mean “list”?")
    }
}
