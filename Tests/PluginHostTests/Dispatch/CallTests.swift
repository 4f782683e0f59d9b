import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Calls by target and action: how they are resolved, checked, converted and answered.
@Suite struct CallTests {
    let test: TestHost
    var host: PluginHost { test.host }

    init() throws { test = try TestHost.withSamples() }

    @Test func `A call that exceeds its timeout is an error, even if it has no result`() throws {
        try host.register(
            Manifest("Slow", version: "1.0.0") {
                Target("Slow") {
                    Action("wait") { _ = usleep(50_000) }
                    Action("answer") {
                        usleep(50_000)
                        return 1
                    }
                }
            })
        for action in ["wait", "answer"] {
            let error = #expect(throws: PluginError.self) {
                try host.perform("Slow", action, timeout: .milliseconds(1))
            }
            #expect(error?.code == .deadlineExceeded, "\(action)")
        }
        #expect(try host.perform("Slow", "wait") == Value.null)
    }

    // MARK: Names

    @Test func `A call gets its result`() throws {
        #expect(try host.perform("A", "fetchDetail", ["key": "42"]) == ["title": "Detail of 42", "page": 1])
        #expect(try host.perform("C", "add", ["a": 2, "b": 3]) == 5)
    }

    @Test func `A call goes from module to module and back, by name only`() throws {
        #expect(try host.perform("A", "price", ["key": "apple"]) == "0.5 euro")
        #expect(try host.perform("C", "relay", ["name": "C"]) == "Hello, C!")
    }

    @Test func `An unknown target is an error with a suggestion`() throws {
        let error = try test.failure("Countr", "add")
        #expect(error.code == .unknownTarget && error.source == nil)
        #expect(error.message.contains("“Countr”") && error.message.contains("Did you mean “Counter”?"))
        #expect(try !test.failure("Zebra crossing", "add").message.contains("Did you mean"))
    }

    @Test func `An unknown action is an error with a suggestion`() throws {
        let error = try test.failure("Counter", "ad")
        #expect(error.code == .unknownAction && error.source == nil)
        #expect(error.message.contains("Counter") && error.message.contains("Did you mean “add”?"))
    }

    @Test func `Names are case-sensitive, and can be any text`() throws {
        #expect(try test.failure("counter", "add").code == .unknownTarget)
        for name in ["", "\0", "A/fetchDetail", "é", String(repeating: "x", count: 100_000)] {
            #expect(try test.failure(name, "add").code == .unknownTarget)
            #expect(try test.failure("Counter", name).code == .unknownAction)
        }
    }

    // MARK: Parameters

    @Test func `A missing parameter is named`() throws {
        let error = try test.failure("B", "greet")
        #expect(error.code == .missingParameter && error.message.contains("“name” (string)"))
    }

    @Test func `A superfluous parameter is named, with a suggestion`() throws {
        let error = try test.failure("B", "greet", ["name": "x", "nam": "y"])
        #expect(error.code == .unknownParameter)
        #expect(error.message.contains("“nam”") && error.message.contains("Did you mean “name”?"))
    }

    @Test(arguments: ["a", "abc", "abcd", "abcdefg", "abcdefgh", "abcdefghi", "abcdefghijklmnopqr"])
    func `A name of the right length with another byte is refused`(name: String) throws {
        try host.register(
            Manifest("Names", version: "1.0.0") {
                Target("Names") { Action(name, .required(name, Int.self)) { $0 } }
            })
        #expect(try host.perform("Names", name, [name: 1]) == 1)
        for position in name.indices {
            var other = name
            other.replaceSubrange(position...position, with: "_")
            #expect(try test.failure("Names", name, [other: 1]).code == .unknownParameter)
        }
    }

    @Test func `A mistyped parameter is named, with both types`() throws {
        let error = try test.failure("B", "greet", ["name": 5])
        #expect(error.code == .mistypedParameter)
        #expect(error.message.contains("“name”") && error.message.contains("string") && error.message.contains("int 5"))
    }

    @Test func `Every kind is refused where another one is declared`() throws {
        let object = try host.perform("Callbacks", "link")
        let values: [String: Value] = [
            "bool": true, "int": 1, "double": 1.5, "string": "x", "bytes": .bytes([1]), "list": [1], "map": ["a": 1],
            "object": object,
        ]
        for (action, _) in values {
            for (kind, value) in values where kind != action && !(action == "double" && kind == "int") {
                #expect(
                    try test.failure("Echo", action, ["value": value]).code == .mistypedParameter,
                    "\(kind) as \(action)")
            }
            #expect(try host.perform("Echo", action, ["value": values[action]!]) == values[action]!)
        }
    }

    @Test func `Parameters are accepted by position`() throws {
        #expect(try host.perform("A", "fetchDetail", ["42", 3]) == ["title": "Detail of 42", "page": 3])
        #expect(try host.perform("Echo", "eight", [1, 2, 3, 4, 5, 6, 7, 8]) == [1, 2, 3, 4, 5, 6, 7, 8])
    }

    @Test func `Positions and names can be mixed`() throws {
        let parameters = Parameters([("", "42"), ("page", 3)])
        #expect(try host.perform("A", "fetchDetail", parameters)["page"] == 3)
    }

    @Test func `Too many parameters by position are refused`() throws {
        #expect(try test.failure("B", "greet", ["a", "b"]).code == .unknownParameter)
        #expect(try test.failure("Echo", "nothing", [1]).code == .unknownParameter)
    }

    @Test func `A parameter by name and by position counts as given twice`() throws {
        let error = try test.failure("B", "greet", Parameters([("name", "a"), ("", "b")]))
        #expect(error.code == .unknownParameter && error.message.contains("by name and by position"))
    }

    @Test func `Of equal names, the first one counts`() throws {
        #expect(try host.perform("B", "greet", Parameters([("name", "a"), ("name", "b")])) == "Hello, a!")
    }

    @Test func `Numbers are converted if nothing is lost`() throws {
        #expect(try host.perform("Echo", "double", ["value": 3]) == 3.0)
        #expect(try host.perform("Echo", "int", ["value": 3.0]) == 3)
        #expect(try host.perform("Echo", "int", ["value": .double(-0.0)]) == 0)
        #expect(try host.perform("Echo", "int", ["value": .int(.min)]) == .int(.min))
    }

    @Test func `Numbers are refused if something would be lost`() throws {
        for value: Value in [3.5, .double(.nan), .double(.infinity), 1e19, .double(-9.3e18)] {
            #expect(try test.failure("Echo", "int", ["value": value]).code == .mistypedParameter, "\(value)")
        }
        #expect(try test.failure("Echo", "double", ["value": .int((1 << 53) + 1)]).code == .mistypedParameter)
        #expect(try host.perform("Echo", "double", ["value": .int(1 << 53)]) == .double(0x1p53))
    }

    @Test func `A number that is too big for the closure's type is an error of the module`() throws {
        #expect(try host.perform("Echo", "small", ["value": 127]) == 127)
        let error = try test.failure("Echo", "small", ["value": 128])
        #expect(error.code == .invalidValue && error.source == "FixtureModule")
    }

    @Test func `Null means a missing value where a value is optional`() throws {
        #expect(try host.perform("Echo", "any", ["value": nil]) == nil)
        #expect(try test.failure("Echo", "int", ["value": nil]).code == .mistypedParameter)
        let expected: Value = ["a": 7, "b": "none", "c": "none", "d": [1, 2]]
        #expect(try host.perform("Echo", "defaults") == expected)
        #expect(try host.perform("Echo", "defaults", ["a": nil, "b": nil, "c": nil, "d": nil]) == expected)
        let given: Value = ["a": 1, "b": "2", "c": 3, "d": [4]]
        #expect(try host.perform("Echo", "defaults", ["a": 1, "b": "2", "c": 3, "d": [4]]) == given)
    }

    @Test func `Codable types can be parameters and results`() throws {
        let shape: Value = ["corners": [["x": 1], ["x": 2, "y": 0.5]], "color": "red"]
        let turned: Value = ["corners": [["x": 2, "y": 0.5], ["x": 1]], "color": "red"]
        #expect(try host.perform("Echo", "shape", ["value": shape]) == turned)
        #expect(try host.perform("Echo", "color", ["value": "green"]) == "green")
        for bad: Value in [5, ["corners": []], ["corners": [], "color": "blue"]] {
            let error = try test.failure("Echo", "shape", ["value": bad])
            #expect(error.code == .mistypedParameter && error.source == "FixtureModule")
        }
    }

    @Test func `Values can be nested 128 deep, and no deeper`() throws {
        func nest(_ depth: Int) -> Value { (0..<depth).reduce(1) { value, _ in [value] } }
        #expect(try host.perform("Echo", "any", ["value": nest(128)]) == nest(128))
        #expect(try test.failure("Echo", "any", ["value": nest(129)]).code == .invalidValue)
    }

    // MARK: Results

    @Test func `Results of every kind, and none, arrive unchanged`() throws {
        let values: [Value] = [
            nil, true, .int(.max), 2.5, "", "漢", .bytes([]), .bytes([1]), [], [[nil]], [:], ["": ["a": [1.5]]],
        ]
        for value in values { #expect(try host.perform("Echo", "any", ["value": value]) == value) }
        #expect(try host.perform("Echo", "nothing") == nil)
    }

    @Test func `An error that a module throws keeps code and message, and names the module`() throws {
        #expect(
            try test.failure("Failing", "coded")
                == PluginError("outOfStock", "There are no more.", source: "FixtureModule"))
        #expect(try test.failure("C", "add", ["a": .int(.max)]).source == "ModuleC")
    }

    @Test func `An error without a code is actionFailed`() throws {
        let error = try test.failure("Failing", "plain")
        #expect(error.code == .actionFailed && error.source == "FixtureModule" && error.message.contains("bad"))
    }

    @Test func `A result that cannot cross the boundary is an error`() throws {
        #expect(try test.failure("Failing", "tooBig").code == .invalidResult)
    }

    @Test func `An error that a module passes on keeps its code`() throws {
        let refused = try test.failure("Chain", "forward", ["target": "C", "action": "add"])
        #expect(refused.code == .missingParameter && refused.source == "FixtureModule")
    }

    @Test(.disabled(if: modulesAreIsolated, "Values are copied to another process."))
    func `A megabyte of bytes arrives without a copy`() throws {
        let bytes = Bytes(count: 1 << 20) { $0[0] = 1 }
        let address = bytes.withUnsafeBytes { Int(bitPattern: $0.baseAddress) }
        let measured = try host.perform("C", "measure", ["data": .bytes(bytes)])
        #expect(measured == ["address": .int(address), "count": .int(1 << 20)])
        #expect(try host.perform("B", "sum", ["data": .bytes(bytes)]) == 1)
    }

    // MARK: Fallbacks

    @Test func `notFound of a target gets the name and the parameters`() throws {
        #expect(
            try host.perform("Lost", "where", ["a": 1, "b": [true]])
                == ["action": "where", "parameters": ["a": 1, "b": [true]]])
        #expect(try host.perform("Lost", "where", [5, 6])["parameters"] == ["0": 5, "1": 6])
        #expect(try host.perform("Lost", "known") == true)
        #expect(try host.perform("A", "nope") == "A has no page called “nope”")
    }

    @Test func `notFound gets the first of equal parameters`() throws {
        #expect(try host.perform("Lost", "x", Parameters([("a", 1), ("a", 2)]))["parameters"] == ["a": 1])
    }

    @Test func `The host's handler answers for missing targets and missing actions`() throws {
        host.onMissingTarget { target, action, parameters, origin in
            [
                "target": .string(target), "action": .string(action), "parameters": .map(parameters),
                "remote": .bool(origin == .remote),
            ]
        }
        #expect(
            try host.perform("Gone", "do", ["a": 1])
                == ["target": "Gone", "action": "do", "parameters": ["a": 1], "remote": false])
        #expect(try host.open("app://Gone/do?a=1", origin: .remote)["remote"] == true)
        #expect(
            try host.perform("Counter", "nope", [2, "x"])
                == ["target": "Counter", "action": "nope", "parameters": ["0": 2, "1": "x"], "remote": false])
        #expect(try host.bind("Counter", "nope").perform()["action"] == "nope")
        #expect(try host.perform("A", "nope") == "A has no page called “nope”")
        #expect(try host.perform("Chain", "forward", ["target": "Gone", "action": "x"])["target"] == "Gone")
        host.onMissingTarget(nil)
        #expect(try test.failure("Gone", "do").code == .unknownTarget)
        #expect(try test.failure("Counter", "nope").code == .unknownAction)
    }

    @Test func `The host's handler may be asynchronous where the caller awaits`() async throws {
        host.onMissingTarget { [unowned host] target, action, parameters, _ async throws -> Value in
            await Task.yield()
            if target == "Late" {
                try host.register(
                    Manifest("Late", version: "1.0.0") {
                        Target("Late") { Action("add", .required("n", Int.self)) { n in n + 1 } }
                    })
                return try await host.call(target, action, Parameters(parameters))
            }
            throw PluginError("elsewhere", "\(target)/\(action) is elsewhere.")
        }
        #expect(try await host.call("Late", "add", ["n": 1]) == 2)
        #expect(try host.perform("Late", "add", ["n": 2]) == 3)
        let missing = await #expect(throws: PluginError.self) { try await host.open("app://Counter/nope") }
        #expect(missing == PluginError("elsewhere", "Counter/nope is elsewhere."))
        let synchronous = try test.failure("Gone", "do")
        #expect(synchronous.code == .asynchronousAction)
        #expect(synchronous.message.hasPrefix("No module offers the target “Gone”."))
        #expect(synchronous.message.contains("use call"))
        #expect(host.canOpen("app://Gone/do"))
    }

    @Test func `The deadline of the host's asynchronous handler is an error that names target and action`() async throws
    {
        host.onMissingTarget { _, _, _, _ async throws -> Value in
            try await Task.sleep(for: .seconds(600))
            return nil
        }
        let late = PluginError(
            .deadlineExceeded, "The program's fallback for Gone/do did not reply before its deadline.")
        let called = await #expect(throws: PluginError.self) {
            try await host.call("Gone", "do", timeout: .milliseconds(20))
        }
        #expect(called == late)
        let opened = await #expect(throws: PluginError.self) {
            try await host.open("app://Gone/do", timeout: .milliseconds(20))
        }
        #expect(opened == late)
        host.onMissingTarget { target, _, _, _ async throws -> Value in
            throw PluginError(.deadlineExceeded, "\(target) was late.")
        }
        let thrown = await #expect(throws: PluginError.self) { try await host.call("Gone", "do") }
        #expect(thrown?.message == "Gone was late.")
    }

    @Test func `A caller that no longer waits cancels the host's asynchronous handler`() async throws {
        let (begun, hasBegun) = AsyncStream<Void>.makeStream()
        let (ended, hasEnded) = AsyncStream<Void>.makeStream()
        host.onMissingTarget { _, _, _, _ async throws -> Value in
            defer { hasEnded.yield() }
            hasBegun.yield()
            try await Task.sleep(for: .seconds(600))
            return nil
        }
        let call = Task { [host] in try await host.call("Gone", "do") }
        for await _ in begun { break }
        call.cancel()
        for await _ in ended { break }
        let error = await #expect(throws: PluginError.self) { try await call.value }
        #expect(error?.code == .cancelled)
    }

    @Test func `The host's handler gets the parameters even if there is no module at all`() throws {
        let empty = try TestHost([])
        empty.host.onMissingTarget { _, _, parameters, _ in .map(parameters) }
        #expect(try empty.host.perform("Gone", "do", ["a": 1]) == ["a": 1])
    }

    @Test func `The error of the host's handler is the error of the call`() throws {
        host.onMissingTarget { _, _, _, _ in throw PluginError("elsewhere", "Ask somebody else.") }
        #expect(try test.failure("Gone", "do") == PluginError("elsewhere", "Ask somebody else."))
    }

    // MARK: What a module knows

    @Test func `A module knows its folder and its configuration`() throws {
        let configured = try TestHost([built("libFixtureModule.so")]) {
            $0.moduleConfiguration = ["FixtureModule": ["color": "red", "numbers": [1, 2]]]
        }
        #expect(try configured.host.perform("About", "configuration") == ["color": "red", "numbers": [1, 2]])
        #expect(try configured.host.perform("About", "folder") == .string("\(configured.folder.path)/plugins"))
        #expect(try host.perform("About", "configuration") == [:])
    }

    @Test func `A module writes to the log under its name`() {
        #expect(test.log.contains { $0.module == "ModuleA" && $0.level == .info && $0.message == "The shop is open." })
    }

    // MARK: The end

    @Test func `After the end, every call fails because the host has stopped`() throws {
        let callback = host.callback { _ in 1 }
        host.shutdown()
        #expect(try test.failure("A", "fetchDetail").code == .hostStopped)
        #expect(try callback() == 1)
    }

    @Test func `Two hosts in one process have modules and results of their own`() throws {
        let other = try TestHost([built("libModuleA.so")])
        #expect(try host.perform("Counter", "add", [5]) == 5)
        #expect(try other.host.perform("Counter", "add", [1]) == 1)
        #expect(try host.perform("Counter", "add", [0]) == 5)
        #expect(try other.failure("B", "greet", ["x"]).code == .unknownTarget)
        other.host.shutdown()
        #expect(try host.perform("Counter", "add", [0]) == 5)
    }
}
