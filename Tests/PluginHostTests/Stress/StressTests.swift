import Foundation
import Testing

@testable import TestSupport

/// Modules are replaced, removed, added and broken in random order while many callers use them; see ``StressRound``.
///
/// Runs for some seconds, or for `PLUGINHOST_STRESS_SECONDS` in rounds of a minute, each in a separate process.
/// `PLUGINHOST_STRESS_SEED` is the first seed, such as the one that a failure has printed:
///
///     PLUGINHOST_STRESS_SECONDS=3600 swift test --filter StressTests
@Suite(.serialized) struct StressTests {
    private static func setting(_ name: String) -> Double? {
        ProcessInfo.processInfo.environment["PLUGINHOST_STRESS_\(name)"].flatMap { Double($0) }
    }

    @Test func `No call is lost, doubled, misrouted or torn, whatever happens to the folder`() async throws {
        let seconds = Self.setting("SECONDS") ?? 4
        let seed = Self.setting("SEED").map { UInt64($0) } ?? .random(in: 1...1_000_000)
        let folder = try TemporaryFolder()
        let report = try folder.file("report")
        for round in 0..<max(1, UInt64((seconds / 60).rounded(.up))) {
            print("Stress: seed \(seed + round)")
            await #expect(processExitsWith: .success, "seed \(seed + round)") {
                [seed = seed + round as UInt64, seconds = min(seconds, 60) as Double, report = report as String] in
                let outcome = try await StressRound(seed: seed, seconds: seconds).run()
                let lines = [outcome.summary] + outcome.findings
                try Data(lines.joined(separator: "\n").utf8).write(to: URL(fileURLWithPath: report))
                #expect(outcome.findings.isEmpty)
            }
            print("Stress: \(try String(contentsOfFile: report, encoding: .utf8))")
        }
    }
}
