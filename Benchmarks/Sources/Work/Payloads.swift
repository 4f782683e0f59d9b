import Figures
import Glibc
import PluginABI
import PluginHost

extension Comparison {
    /// Bytes in, their length out; and a length in, bytes out.
    ///
    /// - Parameter sizes: The sizes of the payload, in bytes.
    public static func payloads(_ sizes: [Int]) throws -> [Comparison] {
        let host = try PluginHost.bench()
        return sizes.flatMap { size in
            let bytes = Bytes(count: size) { memory in memory.initializeMemory(as: UInt8.self, repeating: 7) }
            let ready: Parameters = ["count": .int(size)]
            return [
                Comparison(
                    "bytes in, their length out", size: size, goal: Goal(growth: 1.2),
                    floors: [pointer(bytes), copy(bytes)]
                ) { count in
                    var sum = 0
                    for _ in 0..<count {
                        sum &+= try host.perform("Bench", "length", ["bytes": .bytes(bytes)]).int ?? 0
                    }
                    keep(sum)
                },
                Comparison(
                    "a length in, bytes out", size: size, goal: size >= 1 << 20 ? Goal(timesFloor: 1.2) : Goal(),
                    floors: [copy(bytes)]
                ) { count in
                    var sum = 0
                    for _ in 0..<count { sum &+= try host.perform("Bench", "bytes", ready).bytes?.count ?? 0 }
                    keep(sum)
                },
            ]
        }
    }

    /// A call through a C pointer that gets the address.
    private static func pointer(_ bytes: Bytes) -> Work {
        let three = Opened.three
        return Work("C pointer") { count in
            var sum = 0
            bytes.withUnsafeBytes { memory in
                let start = memory.baseAddress!.assumingMemoryBound(to: UInt8.self)
                for n in 0..<count { sum &+= three(start, memory.count, n, start, 0) }
            }
            keep(sum)
        }
    }

    /// One copy into new memory.
    static func copy(_ bytes: Bytes) -> Work {
        Work("malloc and memcpy") { count in
            var sum = 0
            bytes.withUnsafeBytes { memory in
                for _ in 0..<count {
                    let copy = malloc(memory.count)!
                    memcpy(copy, memory.baseAddress!, memory.count)
                    sum &+= Int(copy.load(fromByteOffset: memory.count / 2, as: UInt8.self))
                    free(copy)
                }
            }
            keep(sum)
        }
    }
}
