import Figures
import Foundation
import PluginABI
import PluginHost
import Synchronization
import Work

/// Two threads that call one action, compared with one thread.
struct Threads {
    let effort: Effort

    init(_ effort: Effort) { self.effort = effort }

    func rows() throws -> [Row] {
        let host = try PluginHost.bench()
        let parameters: Parameters = ["n": 7]
        let calls = scaling { count in
            var sum = 0
            for _ in 0..<count { sum &+= (try? host.perform("Bench", "one", parameters).int) ?? 0 }
            keep(sum)
        }
        let loops = scaling { count in
            // Takes roughly as long as a call, and shares nothing.
            var state = UInt64(count)
            for _ in 0..<count {
                for _ in 0..<40 { state = state &* 0x5851_F42D_4C95_7F2D &+ 0x1405_7B7E_F767_814F }
            }
            keep(Int(truncatingIfNeeded: state))
        }
        // In turns, like all measurements.
        var (ours, floor) = ([Double](), [Double]())
        for _ in 0..<effort.repetitions {
            ours.append(calls())
            floor.append(loops())
        }
        var row = Row("two threads, one action, against one thread", unit: "×", ours: ours.median)
        row.floors = [Row.Other("two unshared loops", floor.median)]
        row.goal = Goal(atLeastOfFloor: 0.95)
        return [row]
    }

    /// Returns a function that measures how many times as much work two threads do in the same time.
    func scaling(_ work: @escaping @Sendable (Int) -> Void) -> () -> Double {
        var count = 1000
        while case let time = time(1, count, work), time < effort.duration { count *= 2 }
        return { [count] in
            let alone = time(1, count, work)
            return 2 * alone / time(2, count, work)
        }
    }

    /// Returns the time from the moment when all threads are ready until the last one ends.
    private func time(_ threads: Int, _ count: Int, _ work: @escaping @Sendable (Int) -> Void) -> Double {
        let waiting = Ready(threads)
        let finished = DispatchGroup()
        for _ in 0..<threads {
            finished.enter()
            Thread.detachNewThread {
                work(100)
                waiting.wait()
                work(count)
                finished.leave()
            }
        }
        waiting.waitForOthers()
        let start = now()
        waiting.go()
        finished.wait()
        return now() - start
    }

    /// A start line. It spins: waking a thread would be part of what is measured.
    private final class Ready: Sendable {
        private let missing: Atomic<Int>
        private let isOpen = Atomic(false)
        init(_ count: Int) { missing = Atomic(count) }
        func wait() {
            missing.subtract(1, ordering: .acquiringAndReleasing)
            while !isOpen.load(ordering: .acquiring) {}
        }
        func waitForOthers() { while missing.load(ordering: .acquiring) > 0 { sched_yield() } }
        func go() { isOpen.store(true, ordering: .releasing) }
    }
}
