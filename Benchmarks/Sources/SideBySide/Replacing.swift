import Figures
import Foundation
import PluginABI
import PluginHost
import Synchronization
import Work

/// One thread that calls while another replaces a module ten times a second.
struct Replacing {
    let effort: Effort

    init(_ effort: Effort) { self.effort = effort }

    func rows() throws -> [Row] {
        let temporary = TemporaryFolder()
        let folder = temporary.folder("plugins")
        try FileManager.default.copyItem(
            atPath: Opened.module("BenchModule"), toPath: "\(folder)/libBenchModule.so")
        try NumberedModules.write(0, to: folder)
        let host = try PluginHost.bench(folder: folder, in: temporary, watches: true)
        let seconds = effort.isCheck ? 0.3 : 1.0
        var (undisturbed, disturbed) = ([Double](), [Double]())
        var version = 0
        for _ in 0..<effort.repetitions {
            undisturbed.append(calls(of: host, for: seconds))
            let writer = Writer(folder, after: version)
            disturbed.append(calls(of: host, for: seconds))
            version = try writer.stop()
        }
        try reached(version, host)
        var row = Row(
            "calls a second while a module is replaced", unit: "×", ours: disturbed.median / undisturbed.median)
        row.floors = [Row.Other("undisturbed", 1)]
        row.goal = Goal(atLeastOfFloor: 0.95)
        return [row]
    }

    /// How many calls a second one thread makes.
    private func calls(of host: PluginHost, for seconds: Double) -> Double {
        let parameters: Parameters = ["n": 7]
        let start = now()
        var count = 0
        var end = start
        while end - start < seconds * 1e9 {
            var sum = 0
            for _ in 0..<1000 { sum &+= (try? host.perform("Bench", "one", parameters).int) ?? 0 }
            keep(sum)
            count += 1000
            end = now()
        }
        return Double(count) / (end - start) * 1e9
    }

    /// Checks that the last version serves in the end. Otherwise, the row would not measure replacements.
    private func reached(_ version: Int, _ host: PluginHost) throws {
        let expected = "\(100_000_000 + version).0.0-numbered"
        for _ in 0..<500 {
            if try host.perform(NumberedModules.name(0), "version").string == expected { return }
            usleep(10_000)
        }
        throw Failure("The version \(expected) of \(NumberedModules.name(0)) never served.")
    }
}

/// A thread that renames the next version of a module over the one before, ten times a second.
private final class Writer: Sendable {
    private let isOver = Atomic(false)
    private let finished = DispatchGroup()
    private let outcome = Mutex<Result<Int, any Error>?>(nil)

    init(_ folder: String, after first: Int) {
        finished.enter()
        Thread.detachNewThread { [self] in
            let result = Result {
                var version = first
                while !isOver.load(ordering: .relaxed) {
                    version += 1
                    try NumberedModules.write(0, version: version, to: folder)
                    usleep(100_000)
                }
                return version
            }
            outcome.withLock { $0 = result }
            finished.leave()
        }
    }

    /// - Returns: The last version.
    func stop() throws -> Int {
        isOver.store(true, ordering: .relaxed)
        finished.wait()
        return try outcome.withLock { $0! }.get()
    }
}
