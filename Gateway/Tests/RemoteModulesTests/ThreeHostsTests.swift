import Foundation
import PluginABI
import PluginGateway
import PluginHost
import RemoteModules
import Synchronization
import Testing

/// The outcomes that the callers have received.
private final class Counts: Sendable {
    private struct State {
        var again = 0
        var lost = 0
        var failed: [PluginError] = []
        var isOver = false
    }

    private let state = Mutex(State())

    /// How many idempotent calls were answered.
    var again: Int { state.withLock(\.again) }
    /// How many idempotent calls were lost because both of their hosts vanished.
    var lost: Int { state.withLock(\.lost) }
    /// The errors of other calls.
    var failed: [PluginError] { state.withLock(\.failed) }
    var isOver: Bool { state.withLock(\.isOver) }

    func addLost() { state.withLock { $0.lost += 1 } }
    func add() { state.withLock { $0.again += 1 } }
    func add(_ error: PluginError) { state.withLock { $0.failed.append(error) } }
    func end() { state.withLock { $0.isOver = true } }
}

/// Three hosts behind a balancer, of which two vanish under load.
@Suite struct ThreeHostsTests {
    @Test func `an idempotent call is lost only to two hosts, no other is made twice, and the counters agree`()
        async throws
    {
        let library = try bModule().build()
        var gateways: [TestGateway] = []
        for _ in 0..<3 { gateways.append(try await TestGateway([library])) }
        let relay = try Relay(gateways.map(\.port))
        let mount = try TestMount("http://127.0.0.1:\(relay.port)")
        #expect(await mount.isServed())
        let folder = try makeFolder()
        let counts = Counts()
        // Each caller is a thread that waits, as a module would.
        let callers = (0..<6).map { caller in
            Task {
                try await onThread {
                    var number = 0
                    while !counts.isOver {
                        number += 1
                        let name = Value.string("\(folder)/\(caller).\(number)")
                        do throws(PluginError) {
                            guard try mount.host.perform("B", "greet", ["name": name]) == name else { return false }
                        } catch {
                            // A call is repeated once. With two hosts that vanish, both attempts can fail.
                            guard error.message.contains("It was sent twice.") else { throw error }
                            counts.addLost()
                            continue
                        }
                        counts.add()
                        do throws(PluginError) {
                            try mount.host.perform("B", "append", ["file": name])
                            guard FileManager.default.contents(atPath: name.string!)?.count == 1 else { return false }
                        } catch {
                            counts.add(error)
                            guard FileManager.default.contents(atPath: name.string!)?.count ?? 0 <= 1 else {
                                return false
                            }
                        }
                    }
                    return true
                }
            }
        }
        func continues() async -> Bool {
            let before = counts.again
            return await becomesTrue { counts.again > before + 30 }
        }
        #expect(await continues())
        relay.cut(gateways[0].port)
        #expect(await continues())
        // This host ends in an orderly way.
        try await gateways[1].end()
        #expect(await continues())
        counts.end()
        for caller in callers { #expect(try await caller.value) }
        let status = mount.remote.status
        #expect(status.breaker == .closed, "\(status)")
        for error in counts.failed {
            #expect(["moduleUnavailable", "hostStopping"].contains(error.code.rawValue), "\(error)")
            #expect(error.message.contains("unknown"), "\(error)")
        }
        // Each call was sent once, or again if it was retried. Only calls without an answer, or with that of a host
        // that ends, are retried.
        #expect(counts.lost <= callers.count)
        let calls = 2 * counts.again + counts.lost
        #expect(status.sent == calls + status.retried, "\(status)")
        #expect(status.unanswered <= status.retried + counts.failed.count + counts.lost, "\(status)")
        try await mount.end()
        relay.end()
        for gateway in [gateways[0], gateways[2]] { try await gateway.end() }
    }
}
