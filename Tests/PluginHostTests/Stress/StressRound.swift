import CPluginHost
import Foundation
import PluginABI
import Synchronization

@testable import PluginHost
@testable import TestSupport

/// One round of the stress test: a host, callers that never pause, and a thread that changes the folder. Runs in a
/// separate process, because an image that was opened stays mapped forever.
final class StressRound: Sendable {
    static let places = 5
    /// The last module hands over its count, and is never removed.
    static let counter = places - 1

    let seed: UInt64
    let end: ContinuousClock.Instant
    let folder: TemporaryFolder
    let plugins: String
    let host: PluginHost
    let model = FolderModel(places: StressRound.places)
    let listener = Listener()
    private let findings = Mutex<[String]>([])
    /// The progress of each caller and of the changer, for the watchdog.
    let progress: [Progress]
    let counted = Atomic<Int>(0)
    let changes = Atomic<Int>(0)

    /// The number of calls that a caller has made, and its present work.
    final class Progress: Sendable {
        let calls = Atomic<Int>(0)
        let doing = Mutex("nothing yet")
        let isOver = Atomic(false)
    }

    /// Receives events through the modules.
    final class Listener: Sendable {
        private let heard = Mutex<[Int: [String]]>([:])
        func hear(_ number: Int, _ name: String) { heard.withLock { $0[number, default: []].append(name) } }
        func take(_ number: Int) -> [String] { heard.withLock { $0.removeValue(forKey: number) ?? [] } }
    }

    static let callers = 5

    init(seed: UInt64, seconds: Double) throws {
        self.seed = seed
        end = .now + .seconds(seconds)
        folder = try TemporaryFolder()
        plugins = try folder.folder("plugins")
        progress = (0...Self.callers).map { _ in Progress() }
        var configuration = PluginHost.Configuration(folders: [plugins])
        configuration.stagingFolder = "\(folder.path)/staging"
        configuration.stateFolder = "\(folder.path)/state"
        configuration.handOverTimeout = .seconds(600)
        host = PluginHost(configuration)
        let listener = listener
        try host.register(
            Manifest("Listener", version: "1.0.0") {
                Target("Listener") {
                    Action("heard", .required("n", Int.self), .required("name", String.self)) { n, name in
                        listener.hear(n, name)
                    }
                }
            })
    }

    func report(_ finding: String) {
        findings.withLock { if $0.count < 20 { $0.append(finding) } }
    }

    var isOver: Bool { ContinuousClock.now >= end || !findings.withLock { $0.isEmpty } }

    /// Runs the round. Returns the errors, and a summary with figures.
    func run() async throws -> (findings: [String], summary: String) {
        try host.start()
        let changer = StressChanger(self)
        do { try changer.begin() } catch { report("at the beginning: \(error)") }
        let watchdog = Watchdog(self)
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await onThread { changer.run() } }
            for number in 1...Self.callers {
                let caller = StressCaller(self, number)
                // The last two are tasks.
                if number > Self.callers - 2 {
                    group.addTask { await caller.runInTask() }
                } else {
                    group.addTask { try? await onThread { caller.run() } }
                }
            }
        }
        watchdog.stop()
        do { try await checkEnd() } catch { report("at the end: \(error)") }
        let calls = progress.dropFirst().reduce(0) { $0 + $1.calls.load(ordering: .relaxed) }
        let images = host.generations.map(\.number).max() ?? 0
        host.shutdown()
        return (
            findings.withLock { $0 },
            "seed \(seed): \(calls) calls, \(changes.load(ordering: .relaxed)) changes, \(images) generations, "
                + "\(Table.count.load(ordering: .relaxed)) tables, \(plugin_host_record_count()) records"
        )
    }

    /// Checks after the last call that nothing was lost, and that everything that is no longer needed was released.
    private func checkEnd() async throws {
        let total = try host.perform(StressModule.name(Self.counter), "count").int ?? 0
        let counted = counted.load(ordering: .sequentiallyConsistent)
        if total != counted + 1 { report("\(counted) calls were counted as \(total - 1)") }
        if await !becomesTrue({ !host.generations.contains { $0.state == .draining } }) {
            report("these drain for ever: \(describeGenerations())")
        }
        // The published table, and tables that a thread has retained at this moment.
        if await !becomesTrue({ Table.count.load(ordering: .relaxed) <= 2 }) {
            report("\(Table.count.load(ordering: .relaxed)) tables are kept")
        }
        if plugin_host_record_count() > 128 * 64 { report("\(plugin_host_record_count()) records of calls") }
        let copies = try FileManager.default.subpathsOfDirectory(atPath: "\(folder.path)/staging").filter {
            $0.hasSuffix(".so")
        }
        if copies.count > 3 * Self.places { report("\(copies.count) copies are left in the staging folder") }
    }

    func describeGenerations() -> String {
        host.generations.filter { $0.state != .retired }.map { "\($0.title), \($0.state): \($0.holds)" }
            .joined(separator: "\n")
    }
}

/// Prints what waits for what, and ends the process, if there is no progress for a while.
final class Watchdog: Sendable {
    private let isStopped = Atomic(false)

    init(_ round: StressRound, patience: Int = 60) {
        Thread.detachNewThread { [self] in
            var last: [Int] = []
            var since = 0
            while !isStopped.load(ordering: .relaxed) {
                sleep(1)
                let now = round.progress.map {
                    $0.isOver.load(ordering: .relaxed) ? -1 : $0.calls.load(ordering: .relaxed)
                }
                // Every one of them must make progress.
                let isStuck = zip(now, last).contains { $0 == $1 && $0 >= 0 }
                since = isStuck ? since + 1 : 0
                last = now
                if since > patience { Self.give(round, now) }
            }
        }
    }

    func stop() { isStopped.store(true, ordering: .relaxed) }

    private static func give(_ round: StressRound, _ calls: [Int]) -> Never {
        var text = "Stuck, seed \(round.seed). Generations:\n\(round.describeGenerations())\n"
        for (number, progress) in round.progress.enumerated() {
            let doing = progress.doing.withLock { $0 }
            text += "\(number == 0 ? "The changer" : "Caller \(number)") after \(calls[number]): \(doing)\n"
        }
        FileHandle.standardError.write(Data(text.utf8))
        abort()
    }
}
