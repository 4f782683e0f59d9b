import Figures
import Foundation
import Glibc
import PluginABI
import PluginHost
import Synchronization

// Calls of modules that run in processes of their own.

extension Comparison {
    /// Calls one after the other, so that neither side ever sleeps.
    public static func isolated() throws -> [Comparison] {
        let host = try PluginHost.bench(["PlainModule", "BenchModule", "CallerModule"], isolated: true)
        return [
            oneIsolated(host, "Plain", "C"), oneIsolated(host, "Bench", "Swift"), there(host),
        ] + [1 << 10, 1 << 16, 1 << 20].map { payload(host, $0) }
    }

    private static func oneIsolated(_ host: PluginHost, _ target: String, _ language: String) -> Comparison {
        let parameters: Parameters = ["n": 7]
        // Two thirds of what it took at first.
        return Comparison(
            "isolated call, one int, module in \(language)", peer: "isolated",
            goal: Goal(atMost: 223, floorAtMost: 150),
            floors: [turn]
        ) { count in
            var sum = 0
            for _ in 0..<count { sum &+= try host.perform(target, "one", parameters).int ?? 0 }
            keep(sum)
        }
    }

    /// A call through three processes: the host calls a module, which calls another one, which calls the first again.
    /// It has no goal, because the scheduler places the threads in one of two ways, which differ by a factor of three.
    private static func there(_ host: PluginHost) -> Comparison {
        let parameters: Parameters = ["n": 7]
        return Comparison("isolated: A asks B asks A", floors: [turn]) { count in
            var sum = 0
            for _ in 0..<count { sum &+= try host.perform("Bench", "askCaller", parameters).int ?? 0 }
            keep(sum)
        }
    }

    private static func payload(_ host: PluginHost, _ size: Int) -> Comparison {
        let bytes = Bytes(count: size) { memory in memory.initializeMemory(as: UInt8.self, repeating: 7) }
        return Comparison(
            "isolated: bytes in, their length out", size: size, goal: size == 1 << 16 ? Goal(atMost: 3_000) : Goal(),
            floors: [copy(bytes), turn]
        ) { count in
            var sum = 0
            for _ in 0..<count { sum &+= try host.perform("Plain", "length", ["bytes": .bytes(bytes)]).int ?? 0 }
            keep(sum)
        }
    }

    /// A number that two threads on two processors increment in turns: the least that it costs to notify another
    /// processor, and to get its answer.
    public static var turn: Work {
        Work("a turn of shared memory") { count in
            let turns = Turns(count)
            let before = processors
            processors = 1
            Thread.detachNewThread {
                processors = 2
                turns.answer()
            }
            keep(turns.ask())
            processors = before
        }
    }

    /// The processors on which this thread may run, of the first 64, as bits. Two threads that spin on one processor take a
    /// time slice for each turn.
    private static var processors: UInt {
        get {
            var set: UInt = 0
            _ = affinity("sched_getaffinity")(0, MemoryLayout<UInt>.size, &set)
            return set
        }
        set {
            var set = newValue
            _ = affinity("sched_setaffinity")(0, MemoryLayout<UInt>.size, &set)
        }
    }

    /// Functions of glibc that Swift does not import.
    private static func affinity(
        _ name: String
    ) -> @convention(c) (pid_t, Int, UnsafeMutablePointer<UInt>) -> CInt {
        unsafeBitCast(
            dlsym(nil, name), to: (@convention(c) (pid_t, Int, UnsafeMutablePointer<UInt>) -> CInt).self)
    }

    private final class Turns: Sendable {
        private let turn = Atomic(0)
        private let count: Int

        init(_ count: Int) { self.count = count }

        func answer() {
            for number in 0..<count {
                while turn.load(ordering: .acquiring) != 2 * number + 1 {}
                turn.store(2 * number + 2, ordering: .releasing)
            }
        }

        func ask() -> Int {
            for number in 0..<count {
                turn.store(2 * number + 1, ordering: .releasing)
                while turn.load(ordering: .acquiring) != 2 * number + 2 {}
            }
            return count
        }
    }
}
