import Foundation
import PluginABI
import PluginHost
import Synchronization
import Testing

@testable import TestSupport

/// A module is replaced again and again while many callers use it.
///
/// The module is replaced forty times, or as often as `PLUGINHOST_STRESS_REPLACEMENTS` says (at most about ten
/// thousand, since images stay mapped). Prints the time from the moment at which a file is complete to the first answer
/// of its version.
@Suite(.serialized) struct ReplacementTests {
    @Test func `Not one call fails while a module is replaced again and again`() async throws {
        let count = ProcessInfo.processInfo.environment["PLUGINHOST_STRESS_REPLACEMENTS"].flatMap { Int($0) } ?? 40
        let folder = try TemporaryFolder()
        let report = try folder.file("report")
        await #expect(processExitsWith: .success) { [count = count as Int, report = report as String] in
            let run = try ReplacementRun(count)
            let figures: String
            do { figures = try await run.run() } catch { (figures, run.failure) = ("", "\(error)") }
            try Data("\(figures) \(run.failure ?? "")".utf8).write(to: URL(fileURLWithPath: report))
            #expect(run.failure == nil)
        }
        print("Replacements: \(try String(contentsOfFile: report, encoding: .utf8))")
    }
}

/// Callers, and one thread that replaces the module.
private final class ReplacementRun: Sendable {
    private let count: Int
    private let folder: TemporaryFolder
    private let plugins: String
    private let host: PluginHost
    private let isOver = Atomic(false)
    private let calls = Atomic<Int>(0)
    private let longest = Atomic<Int>(0)
    private let firstFailure = Mutex<String?>(nil)

    init(_ count: Int) throws {
        self.count = count
        folder = try TemporaryFolder()
        plugins = try folder.folder("plugins")
        var configuration = PluginHost.Configuration(folders: [plugins])
        configuration.stagingFolder = "\(folder.path)/staging"
        configuration.stateFolder = "\(folder.path)/state"
        host = PluginHost(configuration)
    }

    var failure: String? {
        get { firstFailure.withLock { $0 } }
        set { firstFailure.withLock { $0 = newValue } }
    }

    func run() async throws -> String {
        let first = StressModule.numbers.lowerBound
        try StressModule(place: 0, number: first).put(into: plugins, as: "module.so")
        try host.start()
        guard host.modules.first?.state == .active else { throw PluginError("never", "\(host.modules)") }
        defer { isOver.store(true, ordering: .sequentiallyConsistent) }
        async let callers: [Void] = onThreads(3) { [self] number in call(boundCall: number != 0) }
        let times = try await onThread { [self] in
            var times: [Double] = []
            for number in first + 1...first + count where failure == nil { times.append(try replace(number)) }
            return times
        }
        isOver.store(true, ordering: .sequentiallyConsistent)
        _ = try await callers
        host.shutdown()
        let sorted = times.sorted()
        func percentile(_ part: Double) -> String {
            String(format: "%.1f ms", sorted.isEmpty ? 0 : sorted[Int(Double(sorted.count - 1) * part)])
        }
        return """
            \(times.count) replacements, \(calls.load(ordering: .relaxed)) calls, \(failure == nil ? 0 : 1) failures; \
            longest call \(String(format: "%.1f ms", Double(longest.load(ordering: .relaxed)) / 1e6)); \
            from the whole file to the first call: median \(percentile(0.5)), 99 % within \(percentile(0.99)), \
            all within \(percentile(1))
            """
    }

    /// Replaces the module, and returns how long this took, in milliseconds.
    private func replace(_ number: Int) throws -> Double {
        let bytes = try StressModule(place: 0, number: number, isOdd: number % 2 == 0).bytes()
        let new = "\(plugins)/.module.so"
        try StressModule.write(bytes, to: new)
        let clock = ContinuousClock()
        let begin = clock.now
        rename(new, "\(plugins)/module.so")
        while failure == nil, try host.perform("Stress00", "answer", [1]).string != StressModule.answer(0, number, 1) {
            guard clock.now < begin + .seconds(600) else { throw PluginError("never", "\(host.modules)") }
            usleep(100)
        }
        let duration = clock.now - begin
        return Double(duration.components.seconds) * 1e3 + Double(duration.components.attoseconds) / 1e15
    }

    private func call(boundCall: Bool) {
        let bound = host.bind("Stress00", "answer")
        let clock = ContinuousClock()
        var n = 0
        while !isOver.load(ordering: .relaxed), failure == nil {
            n += 1
            let begin = clock.now
            do {
                let answer = try boundCall ? bound(n) : host.perform("Stress00", "answer", [.int(n)])
                guard let text = answer.string, let number = Int(text.split(separator: " ")[1]),
                    text == StressModule.answer(0, number, n)
                else { throw PluginError("wrong", "\(answer)") }
            } catch { failure = "\(error)" }
            let time = Int((clock.now - begin).components.attoseconds / 1_000_000_000)
            while case let known = longest.load(ordering: .relaxed), time > known,
                !longest.weakCompareExchange(expected: known, desired: time, ordering: .relaxed).exchanged
            {}
        }
        calls.add(n, ordering: .relaxed)
    }
}
