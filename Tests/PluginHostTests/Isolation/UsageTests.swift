import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// The memory and the processor time that workers use.
@Suite struct UsageTests {
    private static let module = CModule(
        name: "Bad",
        actions: [
            ("eat", "char *memory = malloc(64 << 20); memset(memory, 1, 64 << 20); kept = memory; reply(call, \"\");"),
            ("work", "while (clock() < CLOCKS_PER_SEC / 10) count++; reply_int(call->token, count);"),
            ("abort", "abort();"),
        ], code: "#include <time.h>\nstatic void *volatile kept;")

    private func host() throws -> TestHost {
        try TestHost([Self.module.build()]) { configuration in
            configuration.isolation.modules = .all
            configuration.isolation.restartPauses = [.seconds(600)]
        }
    }

    private func usage(_ host: TestHost) throws -> ProcessUsage {
        let status = try #require(host.host.modules.first)
        let usage = try #require(status.usage)
        #expect(usage.process == status.process)
        #expect(host.host.generations.first?.usage?.process == status.process)
        return usage
    }

    @Test func `A module that uses memory and processor time shows it`() throws {
        let host = try host()
        let before = try usage(host)
        #expect(before.residentBytes > 0)
        try host.host.perform("Bad", "eat")
        #expect(try usage(host).residentBytes - before.residentBytes > 60 << 20)
        try host.host.perform("Bad", "work")
        #expect(try usage(host).processorTime >= .milliseconds(100))
    }

    @Test func `A module that has crashed shows no usage, nor does one in the process`() throws {
        let host = try host()
        let process = try usage(host).process
        #expect(host.code("Bad", "abort") == .moduleCrashed)
        #expect(host.host.modules.first?.usage == nil)
        #expect(host.host.modules.first?.process != process)
        #expect(host.host.generations.allSatisfy { $0.usage == nil })
        guard !modulesAreIsolated else { return }
        #expect(try TestHost([CModule().build()]).host.modules.first?.usage == nil)
    }
}
