import Foundation
import PluginABI
import Synchronization
import Testing

@testable import PluginHost
@testable import TestSupport

/// What the host reports and does when the system grants it no more threads, memory or maps.
@Suite struct LimitTests {
    /// A budget of a thousand maps, of which a test sets how many are used.
    private final class Maps: Sendable {
        let used = Atomic(0)
        let counts = Atomic(0)
    }

    private func budget(_ maps: Maps) -> MapsBudget {
        MapsBudget(
            limit: { 1000 },
            count: {
                maps.counts.add(1, ordering: .relaxed)
                return maps.used.load(ordering: .relaxed)
            })
    }

    @Test func `From 80 per cent of the maps on, a warning names the limit and the remedy`() throws {
        let maps = Maps()
        let budget = budget(maps)
        maps.used.store(700, ordering: .relaxed)
        try budget.require(for: "a.so")
        #expect(budget.warning == nil)
        maps.used.store(801, ordering: .relaxed)
        try budget.require(for: "b.so")
        try budget.require(for: "c.so")
        let warning = try #require(budget.warning)
        #expect(warning.code == .outOfResources)
        for word in ["801 of the 1000", "vm.max_map_count", "Restart", "sysctl -w"] {
            #expect(warning.message.contains(word), "\(warning.message)")
        }
    }

    @Test func `From 90 per cent of the maps on, nothing is opened, so that running code can continue`() throws {
        let maps = Maps()
        let budget = budget(maps)
        maps.used.store(900, ordering: .relaxed)
        let error = #expect(throws: PluginError.self) { try budget.require(for: "/plugins/a.so") }
        #expect(error?.code == .outOfResources)
        #expect(error?.message.contains("/plugins/a.so is not opened") == true, "\(error?.message ?? "")")
        maps.used.store(500, ordering: .relaxed)
        try budget.require(for: "a.so")
    }

    @Test func `Maps are counted rarely as long as many are left`() throws {
        let maps = Maps()
        let budget = MapsBudget(
            limit: { 65_530 },
            count: {
                maps.counts.add(1, ordering: .relaxed)
                return maps.used.load(ordering: .relaxed)
            })
        for number in 0..<13_000 {
            maps.used.store(4 * number, ordering: .relaxed)
            try? budget.require(for: "a.so")
        }
        #expect(maps.counts.load(ordering: .relaxed) < 300)
        #expect(budget.warning == nil)
        maps.used.store(53_000, ordering: .relaxed)
        for _ in 0..<1000 { try? budget.require(for: "a.so") }
        #expect(budget.warning != nil)
    }

    @Test func `This process's maps are counted`() throws {
        #expect(try #require(ProcessLimits.countMaps()) > 20)
        #expect(try #require(ProcessLimits.mapsLimit) > 1000)
    }

    @Test(.disabled(if: isSanitized, "A sanitizer needs more memory than the limit leaves."))
    func `Without a thread for a hook, the error names the limits, and nothing waits`() async {
        await #expect(processExitsWith: .success) {
            let test = try TestHost()
            try test.start()
            var limit = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit)
            let before = limit
            // The limit is too low for the stack of a thread, but leaves enough for what other threads allocate
            // meanwhile: Swift traps if malloc fails.
            let pages = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).prefix { $0 != " " }
            limit.rlim_cur = rlim_t(Int(pages)! * Int(getpagesize()) + (4 << 20))
            let runner = HookRunner()
            let patience = Patience(subject: "x", module: nil, timeout: .seconds(60), log: { _ in })
            var failure: PluginError?
            setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit)
            // Each time, threads that have ended may have left stacks that can be reused.
            for _ in 0..<100 where failure == nil {
                var thread = pthread_t()
                while pthread_create(&thread, nil, { _ in while true { pause() } }, nil) == 0 {}
                do throws(PluginError) {
                    _ = try runner.run(for: ObjectIdentifier(runner), patience) {}
                } catch {
                    failure = error
                }
            }
            limit.rlim_cur = before.rlim_cur
            setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit)
            #expect(failure?.code == .outOfResources)
            for word in ["cannot be started", "RLIMIT_NPROC", "threads-max", "vm.max_map_count", "RLIMIT_AS"] {
                #expect(failure?.message.contains(word) == true, "\(failure?.message ?? "")")
            }
        }
    }

    @Test func `A memory error of the linker is explained by the limits`() {
        let reason = "x.so: failed to map segment from shared object"
        #expect(ProcessLimits.explanation(of: reason).contains("vm.max_map_count"))
        #expect(ProcessLimits.explanation(of: "x.so: undefined symbol: y").isEmpty)
        #expect(ProcessLimits.explanation(of: "x.so: Too many open files").contains("RLIMIT_NOFILE"))
    }
}
