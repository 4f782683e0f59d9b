import Figures
import Glibc
import Work

/// The loops that measure the speed of the machine.
extension Reference {
    /// Runs the loops, for about a millisecond.
    static func measured() -> Reference {
        Reference(arithmetic: least(of: 3, steps: 40_000, arithmetic), memory: least(of: 3, steps: 600, memory))
    }

    /// Runs the loops until they no longer wait for what other work has displaced from the caches. A moment in which
    /// something else runs does not count as another speed.
    static func settled() -> Reference {
        let last = (0..<6).map { _ in measured() }.suffix(4)
        return Reference(arithmetic: last.map(\.arithmetic).min()!, memory: last.map(\.memory).min()!)
    }

    /// The minimum of a few runs, so that an interrupt does not count as another speed.
    private static func least(of count: Int, steps: Int, _ body: (Int) -> Void) -> Double {
        (0..<count).map { _ in
            let start = now()
            body(steps)
            return (now() - start) / Double(steps)
        }.min()!
    }

    /// Products of 128 bits only, which vector instructions do not compute: those of 128 bits take up to 1.6 times as long
    /// while other code has left something in the upper halves of the vector registers.
    private static func arithmetic(_ steps: Int) {
        func next(_ value: UInt64) -> UInt64 {
            let product = value.multipliedFullWidth(by: 0x5851_F42D_4C95_7F2D)
            return product.high ^ product.low
        }
        var (a, b, c, d): (UInt64, UInt64, UInt64, UInt64) = (1, 2, 3, 4)
        for _ in 0..<steps {
            for _ in 0..<4 { (a, b, c, d) = (next(a), next(b), next(c), next(d)) }
        }
        keep(Int(truncatingIfNeeded: a ^ b ^ c ^ d))
    }

    private static func memory(_ steps: Int) {
        var position = here
        for _ in 0..<steps { position = Int(chain[position &* 16]) }
        here = position
    }

    private nonisolated(unsafe) static var here = 0  // Measurements run on one thread.

    /// A circle through all cache lines of 64 MiB in a random order, which is always the same. Large pages of the kernel,
    /// if it has them, so that reads do not wait for the tables of the pages as well.
    private nonisolated(unsafe) static let chain: UnsafeMutablePointer<UInt32> = {
        let lines = 1 << 20
        var order = (0..<lines).map(UInt32.init)
        var state: UInt64 = 1
        for index in stride(from: lines - 1, to: 0, by: -1) {
            state = state &* 0x5851_F42D_4C95_7F2D &+ 0x1405_7B7E_F767_814F
            order.swapAt(index, Int((state >> 33) % UInt64(index)))
        }
        let memory = UnsafeMutableRawPointer.allocate(byteCount: lines * 64, alignment: 2 << 20)
        madvise(memory, lines * 64, MADV_HUGEPAGE)
        let chain = memory.bindMemory(to: UInt32.self, capacity: lines * 16)
        chain.initialize(repeating: 0, count: lines * 16)
        for (index, next) in order.enumerated() { chain[index * 16] = next }
        return chain
    }()
}
