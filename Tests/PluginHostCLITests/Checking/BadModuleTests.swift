import PluginABI
import Testing

@testable import TestSupport

/// Separate from `CheckTests`, so that both can run in different processes.
@Suite(.timeLimit(.minutes(30))) struct BadModuleTests: Checking {
    @Test(arguments: BadModule.all) func `a module that breaks a rule is caught`(bad: BadModule) throws {
        let folder = try TemporaryFolder()
        let (outcome, report) = try check(bad.make(folder), "--timeout", "\(bad.deadline)")
        let found = try #require(result(bad.check, of: report), "\(report)")
        #expect(found["outcome"]?.string == (bad.isFailure ? "failure" : "warning"), "\(report)")
        let said = (found["findings"]?.list ?? []).compactMap { $0["message"]?.string }.joined(separator: "\n")
        for word in bad.words { #expect(said.contains(word), "\(said)") }
        #expect(outcome.signal == 0 && outcome.code == (bad.isFailure ? 65 : 0), "\(report)")
        #expect(report["passed"]?.bool == !bad.isFailure)
    }

    @Test func `every check has a bad module that it must find`() throws {
        let good = try check(CModule().build()).report
        let names = (good["checks"]?.list ?? []).compactMap { $0["check"]?.string }
        #expect(Set(names) == Set(BadModule.all.map(\.check)))
    }
}
