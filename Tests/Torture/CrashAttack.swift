import Foundation

/// A busy isolated module, whose worker is killed at random moments. Each call that the worker runs at that moment soon
/// ends with one error; no other call fails; and nothing is left of the workers.
final class CrashAttack: Attack {
    private static let crashes = 100
    private let program: Program
    private let victims: Victims
    private let modules: TrafficModules
    private var deaths = 0
    private var calls = 0
    private var errors = 0
    private var notBegun = 0
    private var delays: [Double] = []
    private var growth = 0

    init(_ program: Program, _ victims: Victims, _ modules: TrafficModules) {
        (self.program, self.victims, self.modules) = (program, victims, modules)
    }

    let rounds: Int? = 10

    var summary: String {
        let sorted = delays.sorted()
        func percentile(_ part: Double) -> String {
            String(format: "%.1f", sorted.isEmpty ? 0 : sorted[Int(Double(sorted.count - 1) * part)])
        }
        return """
            \(deaths) crashes, \(calls) calls, \(errors) errors of these (\(notBegun) before the module's code began), \
            half of them within \(percentile(0.5)) ms after the crash, 99 % within \(percentile(0.99)) ms, \
            all within \(percentile(1)) ms; the host grew by \(growth) KiB a crash
            """
    }

    func run(in folder: Folder, _ random: inout SplitMix) throws {
        var version = 100
        let traffic = try Traffic(program, victims, modules, in: folder, version: version, crashes: true)
        // Threads, buffers and tables of the allocator that the first crashes need are not counted.
        var before: Resources?
        for crash in 0..<(Self.crashes + 20) {
            if crash == 20 { before = try rest(traffic) }
            // A crash of a different file is its first one, after which the module is started again at once.
            version += 1
            try traffic.replace(by: version)
            if random.oneIn(4) {
                // Strikes during the start or soon afterwards. If the module does not serve, its predecessor goes on.
                try traffic.wait("the version \(version) of Busy is not activated") { traffic[.newVersion] == version }
                try self.crash(traffic[.newProcess], after: random.below(5_000), traffic, &random)
                version += 1
                try traffic.replace(by: version)
            }
            try traffic.waitForService(of: version)
            let process = traffic[.process]
            try self.crash(process, after: random.below(20_000), traffic, &random)
            try traffic.wait("Busy is not started again") { traffic[.process] != process }
        }
        let after = try rest(traffic)
        if let before { try compare(before, after) }
        try traffic.calm()
        (calls, notBegun) = (calls + traffic.calls, notBegun + traffic[.notBegun])
        delays += traffic.delays
        if let longest = traffic.delays.max(), longest > 1000 {
            throw Finding(message: "a call got its error \(longest) ms after the crash")
        }
        try traffic.end()
    }

    private func crash(_ process: Int, after pause: Int, _ traffic: Traffic, _ random: inout SplitMix) throws {
        usleep(UInt32(pause))
        let errors = traffic.counts(.errors)
        traffic[.killedAt] = monotonicNow()
        kill(pid_t(process), random.pick([SIGKILL, SIGSEGV, SIGABRT]))
        deaths += 1
        try traffic.waitForCallers()
        let more = zip(errors, traffic.counts(.errors)).map { $1 - $0 }
        guard more.allSatisfy({ $0 <= 1 }) else {
            throw Finding(message: "after one crash, callers that make one call at a time got \(more) errors")
        }
        self.errors += more.reduce(0, +)
    }

    /// The resources of the host, once only the workers of the two isolated modules are left.
    private func rest(_ traffic: Traffic) throws -> Resources {
        let process = traffic.host.process
        guard eventually(within: 10, { Resources(of: process).children == 2 }) else {
            throw Finding(message: "the host of two isolated modules has \(Resources(of: process).children) processes")
        }
        return Resources(of: process)
    }

    private func compare(_ before: Resources, _ after: Resources) throws {
        growth = (after.memory - before.memory) / Self.crashes
        let figures = "before \(Self.crashes) crashes: \(before), after them: \(after)"
        // Some descriptors and threads are only in use for a moment. The host never frees one part of its memory: the
        // descriptions of modules. The memory that is shared with a worker takes 256 MiB of addresses.
        guard after.descriptors < before.descriptors + 20 else { throw Finding(message: "descriptors: \(figures)") }
        guard after.threads < before.threads + 20 else { throw Finding(message: "threads: \(figures)") }
        guard growth < 100, after.addresses < before.addresses + 4 << 20 else {
            throw Finding(message: "memory: \(figures)")
        }
    }
}

func monotonicNow() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
}
