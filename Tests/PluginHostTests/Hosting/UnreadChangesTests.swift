import PluginABI
import PluginHost
import Testing

@testable import TestSupport

@Suite struct UnreadChangesTests {
    @Test func `a reader that is too slow is told how many changes it has missed`() async throws {
        let host = try TestHost([])
        let changes = host.host.changes
        for number in 1...1005 { host.host.updateConfiguration(["M": .int(number)]) }
        var reader = changes.makeAsyncIterator()
        for _ in 1...10 { #expect(await reader.next()?.isConfigurationChange == true) }
        host.host.updateConfiguration([:])
        for _ in 11...1000 { #expect(await reader.next()?.isConfigurationChange == true) }
        guard case .missed(5)? = await reader.next() else {
            Issue.record("The number of missed changes is missing.")
            return
        }
        #expect(await reader.next()?.isConfigurationChange == true)
    }
}

extension HostChange {
    fileprivate var isConfigurationChange: Bool { if case .configurationChanged = self { true } else { false } }
}
