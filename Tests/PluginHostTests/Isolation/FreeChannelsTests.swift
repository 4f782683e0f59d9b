import CPluginWire
import Dispatch
import Synchronization
import Testing

@testable import PluginHost

@Suite struct FreeChannelsTests {
    @Test func `There is room for all channels of the host`() {
        #expect(FreeChannels.capacity == PLUGIN_WIRE_DOWN_CHANNELS)
    }

    @Test func `Each channel is removed as often as it was inserted`() {
        let free = FreeChannels()
        #expect(free.remove() == nil)
        for _ in 0..<2 {
            for channel in (0..<FreeChannels.capacity).shuffled() { free.insert(channel) }
            let removed = (0..<FreeChannels.capacity).compactMap { _ in free.remove() }
            #expect(removed.sorted() == Array(0..<FreeChannels.capacity))
            #expect(free.remove() == nil)
        }
        for channel: UInt32 in [127, 64, 63] {
            free.insert(channel)
            #expect(free.remove() == channel)
        }
    }

    /// With fewer channels than threads, from both halves, so that the threads compete. The counters are not atomic: two
    /// threads with the same channel would lose uses, and the thread sanitizer would notice them.
    @Test func `No two threads have the same channel`() {
        let free = FreeChannels()
        for channel: UInt32 in 62...65 { free.insert(channel) }
        nonisolated(unsafe) let counters = UnsafeMutablePointer<Int>.allocate(capacity: 4)
        counters.initialize(repeating: 0, count: 4)
        defer { counters.deallocate() }
        let uses = Atomic<Int>(0)
        DispatchQueue.concurrentPerform(iterations: 8) { _ in
            for _ in 0..<20_000 {
                guard let channel = free.remove() else { continue }
                counters[Int(channel - 62)] += 1
                free.insert(channel)
                uses.add(1, ordering: .relaxed)
            }
        }
        #expect((0..<4).reduce(0) { $0 + counters[$1] } == uses.load(ordering: .relaxed))
        #expect((0..<5).compactMap { _ in free.remove() }.sorted() == [62, 63, 64, 65])
    }
}
