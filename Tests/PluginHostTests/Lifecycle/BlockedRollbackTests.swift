import Foundation
import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// Rollbacks while the file of the serving version has different content, which does not replace it.
@Suite(.timeLimit(.minutes(30))) struct BlockedRollbackTests {
    let test: TestHost

    /// A host that serves A 2.0.0 from `A.so`, with 1.0.0 kept as `A-1.0.so`.
    init() throws {
        test = try TestHost { configuration, _ in configuration.watches = false }
        try module("1.0.0").build(into: test.plugins, as: "A-1.0.so")
        try test.start()
        unlink("\(test.plugins)/A-1.0.so")
        try module("2.0.0").build(into: test.plugins, as: "A.so")
        try test.host.lifecycle.update()
        try #require(test.answer("A") == "2.0.0" && kept == ["1.0.0"])
    }

    private func module(_ version: String) -> CModule { CModule(name: "A", version: version, answer: version) }

    private var kept: [String] { test.host.keptVersions(of: "A").map(\.version) }

    private var names: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: test.plugins).sorted()) ?? []
    }

    @Test func `A version whose file now contains one that fails gives way to a rollback`() throws {
        var failing = module("0.9.0")
        failing.setUp = "refuse(call, \"no money\"); return;"
        try failing.build(into: test.plugins, as: "A.so")
        try test.host.lifecycle.update()
        try #require(test.answer("A") == "2.0.0" && test.status("A.so")?.error != nil)
        let plan = try test.host.rollback("A", to: "1.0.0", dryRun: true)
        #expect(plan.moved == ["\(test.plugins)/A.so"] && test.answer("A") == "2.0.0")
        try test.host.rollback("A", to: "1.0.0")
        #expect(test.answer("A") == "1.0.0" && names == ["A-1.0.so"])
        #expect(Set(kept).isSuperset(of: ["0.9.0", "2.0.0"]))
    }

    @Test func `A file with unknown content is not moved, and the error says so`() throws {
        try test.put("no module", "A.so")
        try test.host.lifecycle.update()
        let error = #expect(throws: PluginError.self) { try test.host.rollback("A", to: "1.0.0") }
        #expect(error?.code == .conflict)
        #expect(error?.message.contains("has other content now and is not moved") == true, "\(error?.message ?? "")")
        #expect(test.answer("A") == "2.0.0" && names == ["A.so"])
        unlink("\(test.plugins)/A.so")
        try test.host.rollback("A", to: "1.0.0")
        #expect(test.answer("A") == "1.0.0")
    }
}
