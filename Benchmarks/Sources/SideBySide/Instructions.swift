import Foundation
import Glibc
import PluginABI
import PluginHost
import Work

/// The calls whose instructions are counted, each made any number of times.
enum CountedCall: String, CaseIterable {
    case namedThree, namedThreeMade, namedOne, fromModule, bound, asynchronous, url, service, event, eventOfProgram

    func run(_ count: Int) throws {
        let host = try PluginHost.bench(self == .fromModule ? ["BenchModule", "CallerModule"] : ["BenchModule"])
        let text = "A text that is no small string of Swift's."
        let three: Parameters = ["text": .string(text), "n": 7, "word": "word"]
        let one: Parameters = ["n": 7]
        if self == .url {
            // Enough routes for a linear search to be noticed.
            try host.addRoutes((0..<1000).map { ("app://shop/item\($0)/:id", "Bench/open") })
            try host.addRoute("app://shop/detail/:id", to: "Bench/open")
        }
        let bound = host.bind("Bench", "one")
        try host.register(
            Manifest("Listener", version: "1.0.0") {
                Subscribe { Action("bench.happened", .required("n", Int.self)) { _ in } }
            })
        let subscription = host.on("bench.told") { (_: [String: Value]) in }
        defer { subscription.cancel() }
        var sum = 0
        for n in 0..<count {
            switch self {
            case .eventOfProgram: sum &+= try host.post("bench.told", one).delivered
            case .namedThreeMade:
                sum &+= try host.perform("Bench", "three", Self.three(text, n)).int ?? 0
            case .bound: sum &+= try bound(n) as Int
            case .service: sum &+= try host.service("BenchService").isReady
            case .event: sum &+= try host.post("bench.happened", one).delivered
            case .namedThree: sum &+= try host.perform("Bench", "three", three).int ?? 0
            case .namedOne: sum &+= try host.perform("Bench", "one", one).int ?? 0
            case .asynchronous:  // All calls in one task.
                return keep(
                    try inTask {
                        var sum = 0
                        for _ in 0..<count { sum &+= try await host.call("Bench", "later", one).int ?? 0 }
                        return sum
                    })
            case .fromModule:
                return keep(try host.perform("Caller", "callBench", ["count": .int(count)]).int ?? 0)
            case .url: sum &+= try host.open("app://shop/detail/42?q=lamp&r=small").int ?? 0
            }
        }
        keep(sum)
    }

    /// Makes parameters as a caller does, in a function with a small frame: Swift puts the array of a literal on the
    /// heap if the frame exceeds a kilobyte.
    @inline(never)
    private static func three(_ text: String, _ n: Int) -> Parameters {
        ["text": .string(text), "n": .int(n), "word": "word"]
    }
}

/// Instruction counts of valgrind, compared with limits in a file.
struct Instructions {
    /// The counts per call, and what they depend on.
    struct Limits: Codable {
        var toolchain: String
        var glibc: String
        var architecture: String
        var instructions: [String: Int]
    }

    /// The factor by which a count may exceed its committed limit.
    static let tolerance = 1.02

    /// - Returns: Whether all calls stay within their limits.
    static func check(limits file: String, writes: Bool) throws -> Bool {
        let here = Limits(
            toolchain: toolchain, glibc: glibc, architecture: architecture,
            instructions: try counts())
        if writes {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
            try (encoder.encode(here) + Data("\n".utf8)).write(to: URL(fileURLWithPath: file))
        }
        let limits = try JSONDecoder().decode(Limits.self, from: Data(contentsOf: URL(fileURLWithPath: file)))
        let isComparable =
            (limits.toolchain, limits.glibc, limits.architecture) == (here.toolchain, here.glibc, here.architecture)
        if !isComparable {
            print(
                "The limits are those of \(limits.toolchain), \(limits.glibc), \(limits.architecture); this is "
                    + "\(here.toolchain), \(here.glibc), \(here.architecture). They are shown, not enforced.")
        }
        var isKept = true
        for (call, count) in here.instructions.sorted(by: { $0.key < $1.key }) {
            guard let limit = limits.instructions[call] else {
                print("\(call): \(count) instructions a call: NO LIMIT")
                isKept = false
                continue
            }
            let fits = Double(count) <= Double(limit) * tolerance
            let isMuchLess = Double(count) < Double(limit) * 0.9
            let remark = !fits ? ": TOO MANY" : isMuchLess ? ": much less, the limit can be lowered" : ""
            print("\(call): \(count) instructions a call, limit \(limit)\(remark)")
            isKept = isKept && fits
        }
        if !isKept, isComparable {
            print("If this is intended, run scripts/bench --write-limits, and give the reason in the commit message.")
        }
        return isKept || !isComparable
    }

    /// Counts two runs of very different lengths, so that the start cancels out. The difference is large because
    /// something that takes a hundred thousand instructions may happen once in either run.
    private static func counts() throws -> [String: Int] {
        let temporary = TemporaryFolder()
        let program = try stripped(in: temporary.folder("stripped"))
        var counts: [String: Int] = [:]
        for call in CountedCall.allCases {
            let short = try collected(program, call, 1_000)
            let long = try collected(program, call, 11_000)
            counts[call.rawValue] = (long - short + 5_000) / 10_000
        }
        return counts
    }

    /// Copies this program and the module without debug information, which valgrind does not handle well.
    private static func stripped(in folder: String) throws -> String {
        let program = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().path
        for file in [program, Opened.module("BenchModule"), Opened.module("CallerModule")] {
            let copy = "\(folder)/\(URL(fileURLWithPath: file).lastPathComponent)"
            _ = try Program.run(["strip", "--strip-debug", "-o", copy, file], program: "/usr/bin/env")
        }
        return "\(folder)/\(URL(fileURLWithPath: program).lastPathComponent)"
    }

    /// Returns the instructions of a whole run. Fixed hashes and addresses make them the same in each run.
    private static func collected(_ program: String, _ call: CountedCall, _ count: Int) throws -> Int {
        let report = "\(program).callgrind"
        _ = try Program.run(
            [
                "-u", "BENCHMARK_MODULES", "SWIFT_DETERMINISTIC_HASHING=1", "setarch", "-R", "valgrind", "-q",
                "--tool=callgrind",
                "--callgrind-out-file=\(report)", program, "count", call.rawValue, String(count),
            ], program: "/usr/bin/env")
        let lines = try String(contentsOfFile: report, encoding: .utf8).split(separator: "\n")
        guard let line = lines.first(where: { $0.hasPrefix("totals:") || $0.hasPrefix("summary:") }),
            let total = Int(line.split(separator: " ")[1])
        else { throw Failure("valgrind wrote no total.") }
        return total
    }

    private static var toolchain: String {
        (try? Program.run(["swift", "--version"], program: "/usr/bin/env"))?.split(separator: "\n")
            .first { $0.contains("Swift version") }.map { line in
                line.split(separator: " ").drop { $0 != "version" }.prefix(2).joined(separator: " ")
            }.map { "Swift \($0)" } ?? "unknown"
    }

    private static var glibc: String {
        var text = [CChar](repeating: 0, count: 64)
        let count = confstr(Int32(_CS_GNU_LIBC_VERSION), &text, text.count)
        return String(decoding: text.prefix(max(0, count - 1)).map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    private static var architecture: String {
        #if arch(x86_64)
            "x86_64"
        #elseif arch(arm64)
            "aarch64"
        #else
            "unknown"
        #endif
    }
}
