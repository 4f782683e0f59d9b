import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Values of isolated modules that do not fit into a channel.
@Suite(.serialized) struct LargeValueTests {
    private static let big = CModule(
        name: "Big",
        code: """
            static plugin_value made(int64_t count, int is_touched) {
                uint8_t *bytes = calloc((size_t)count, 1);
                if (is_touched) for (int64_t index = 0; index < count; index++) bytes[index] = (uint8_t)(index % 251);
                return plugin_value_bytes(bytes, (uint32_t)count);
            }
            static void ask_other(plugin_token token, const plugin_value *value, int is_async) {
                plugin_entry parameter = {PLUGIN_STRING_INIT("value"), *value};
                plugin_request request = plugin_request_action(text("Other"), text("echo"), &parameter, 1);
                if (is_async) host->call(host, token, &request, pass_on, (void *)token);
                else host->perform(host, token, &request, pass_on, (void *)token);
            }
            static _Atomic int64_t heard;
            """,
        events: [("big.told", #", "parameters": [{"name": "value", "type": "bytes"}]"#, "heard = arguments[0].count;")],
        targets: [
            .init(
                name: "Big",
                actions: [
                    .init(
                        name: "echo", parameters: ["value": "any"], body: "reply_value(call->token, arguments[0]);"),
                    .init(
                        name: "sum", parameters: ["value": "bytes"],
                        body: """
                            int64_t sum = 0;
                            for (uint32_t index = 0; index < arguments[0].count; index++) sum += arguments[0].as.bytes[index];
                            reply_int(call->token, sum);
                            """),
                    .init(
                        name: "give", parameters: ["count": "int", "touched": "bool", "delay": "int"],
                        body: """
                            usleep((useconds_t)arguments[2].as.integer);
                            plugin_value value = made(arguments[0].as.integer, arguments[1].as.boolean);
                            reply_value(call->token, value);
                            free((void *)value.as.bytes);
                            """),
                    .init(name: "heard", body: "reply_int(call->token, heard);"),
                    .init(
                        name: "relay", parameters: ["value": "any"],
                        body: "ask_other(call->token, &arguments[0], 0);"),
                    .init(
                        name: "later", manifest: "\"async\":true,", parameters: ["value": "any"],
                        body: "ask_other(call->token, &arguments[0], 1);"),
                    .init(
                        name: "relayTooMuch",
                        body: """
                            plugin_value value = made(257 << 20, 0);
                            ask_other(call->token, &value, 0);
                            free((void *)value.as.bytes);
                            """),
                ])
        ])
    private static let other = CModule(
        name: "Other",
        targets: [
            .init(
                name: "Other",
                actions: [
                    .init(name: "echo", parameters: ["value": "any"], body: "reply_value(call->token, arguments[0]);")
                ])
        ])

    private func host() throws -> TestHost {
        try TestHost([Self.big.build(), Self.other.build()]) { $0.isolation.modules = .all }
    }

    /// Checks that nothing has crashed, and that no room is left over: no descriptor and no mapping, on either side.
    private func check(_ host: TestHost) throws {
        let processes = try host.host.modules.map { try #require($0.process) }
        #expect(host.host.modules.allSatisfy { $0.restarts == 0 })
        for process in processes + [getpid()] { #expect(eventually { roomsInUse(process) == 0 }) }
    }

    /// The result of `give`.
    private func bytes(_ count: Int) -> Value {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + 251)
        while bytes.count < count { bytes += 0..<251 }
        return .bytes(Bytes(bytes.prefix(count)))
    }

    private func areEqual(_ one: Value, _ other: Value) -> Bool {
        guard let one = one.bytes, let other = other.bytes, one.count == other.count else { return false }
        return one.withUnsafeBytes { one in
            other.withUnsafeBytes { memcmp(one.baseAddress!, $0.baseAddress!, one.count) == 0 }
        }
    }

    @Test(arguments: [524_207, 524_208, 524_209, 524_287, 524_288, 524_289])
    func `Bytes around the size of a channel arrive unchanged in both directions`(_ count: Int) throws {
        let host = try host()
        let value = bytes(count)
        #expect(areEqual(try host.host.perform("Big", "echo", [value]), value))
        #expect(areEqual(try host.host.perform("Big", "give", [.int(count), true, 0]), value))
        #expect(areEqual(try host.host.perform("Big", "relay", [value]), value))
        try check(host)
    }

    @Test func `64 MiB of bytes and a long list arrive`() throws {
        let host = try host()
        let value = Value.bytes(Bytes([UInt8](repeating: 3, count: 64 << 20)))
        #expect(try host.host.perform("Big", "sum", [value]) == .int(3 * 64 << 20))
        let result = try host.host.perform("Big", "give", [.int(64 << 20), false, 0])
        #expect(result.bytes?.count == 64 << 20)
        let list = Value.list((0..<1_000_000).map { .int($0) })
        #expect(try host.host.perform("Big", "echo", [list]) == list)
        try check(host)
    }

    @Test func `Events and asynchronous calls carry large values`() async throws {
        let host = try host()
        let value = Value.bytes(Bytes([UInt8](repeating: 3, count: 1_000_000)))
        #expect(try await host.host.post("big.told", ["value": value]).delivered == 1)
        #expect(try host.host.perform("Big", "heard") == 1_000_000)
        let result = try await host.host.call("Big", "later", [value])
        #expect(areEqual(result, value))
        try check(host)
    }

    @Test func `Many large values in one module at a time do not mix`() async throws {
        let host = try host()
        let outcomes = try await onThreads(4) { number -> Bool in
            let value = Value.bytes(Bytes([UInt8](repeating: UInt8(number), count: 600_000 + number)))
            return try (0..<30).allSatisfy { _ in areEqual(try host.host.perform("Big", "relay", [value]), value) }
        }
        #expect(outcomes == [true, true, true, true])
        try check(host)
    }

    @Test func `A value that is too large is a clear error, and nothing ends`() throws {
        let host = try host()
        let value = Value.bytes(Bytes([UInt8](repeating: 0, count: 257 << 20)))
        let errors = [
            try host.failure("Big", "sum", [value]), try host.failure("Big", "relayTooMuch"),
            try host.failure("Big", "give", [.int(257 << 20), false, 0]),
        ]
        #expect(errors.map(\.code) == [.invalidValue, .invalidValue, .invalidResult])
        for error in errors { #expect(error.message.contains("256 MiB")) }
        #expect(try host.host.perform("Big", "heard") == 0)
        try check(host)
    }

    @Test func `A large result that comes too late harms nobody`() throws {
        let host = try host()
        let error = #expect(throws: PluginError.self) {
            try host.host.perform("Big", "give", [1_000_000, true, 200_000], timeout: .milliseconds(20))
        }
        #expect(error?.code == .deadlineExceeded)
        #expect(try host.host.perform("Big", "give", [1_000_000, true, 0]).bytes?.count == 1_000_000)
        try check(host)
    }
}

/// How many descriptors and mappings of rooms a process has.
func roomsInUse(_ process: pid_t) -> Int {
    let folder = "/proc/\(process)/fd"
    let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    let links = descriptors.compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\($0)") }
    let maps = (try? String(contentsOfFile: "/proc/\(process)/maps", encoding: .utf8)) ?? ""
    return (links + maps.split(separator: "\n").map(String.init)).count { $0.contains("pluginhost.room") }
}
