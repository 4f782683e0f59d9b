import PluginABI
import Synchronization
import Testing

@testable import PluginHost
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

    @Test(arguments: [false, true])
    func `it is told so even if no later change follows`(isShutDown: Bool) async throws {
        let host = try TestHost([])
        let changes = host.host.changes
        for number in 1...1005 { host.host.updateConfiguration(["M": .int(number)]) }
        if isShutDown { host.host.shutdown() }
        var reader = changes.makeAsyncIterator()
        for _ in 1...1000 { #expect(await reader.next()?.isConfigurationChange == true) }
        guard case .missed(5)? = await reader.next() else {
            Issue.record("The number of missed changes is missing.")
            return
        }
        if isShutDown { #expect(await reader.next() == nil) }
    }

    @Test func `a reader that is cancelled or released is not told any more`() async throws {
        let (stream, observer) = ChangeObserver.make()
        let ends = Atomic(0)
        observer.onTermination { ends.add(1, ordering: .relaxed) }
        let reader = Task { for await _ in stream {} }
        observer.tell(.configurationChanged(["M"]))
        reader.cancel()
        await reader.value
        #expect(ends.load(ordering: .relaxed) == 1)
        var other: (stream: AsyncStream<HostChange>, observer: ChangeObserver)? = ChangeObserver.make()
        other?.observer.onTermination { ends.add(1, ordering: .relaxed) }
        other = nil
        #expect(ends.load(ordering: .relaxed) == 2)
    }
}

extension HostChange {
    fileprivate var isConfigurationChange: Bool { if case .configurationChanged = self { true } else { false } }
}
