import Foundation
import PluginABI
import Synchronization
import Testing

@testable import PluginHost
@testable import TestSupport

/// Orderly removals of modules by the host.
@Suite(.timeLimit(.minutes(30)), .serialized) struct RemovalTests {
    let test: TestHost

    init() throws { test = try TestHost() }

    private func put(_ name: String, _ version: String = "1.0.0", requires: String? = nil, as file: String? = nil)
        throws
    {
        var module = CModule(name: name, version: version, answer: version)
        if let requires { module.moreManifest = "\"requires\": [{\"module\": \"\(requires)\", \"version\": \"*\"}], " }
        try module.build(into: test.plugins, as: file ?? "\(name).so")
    }

    /// The names in the plugins folder, including hidden ones.
    private var names: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: test.plugins).sorted()) ?? []
    }

    private func error(_ body: () throws -> Void) throws -> PluginError {
        try #require(#expect(throws: PluginError.self) { try body() })
    }

    @Test func `A removed module leaves the folder, is kept, and is named in errors`() throws {
        try put("A")
        try test.start()
        let change = try test.host.remove("A")
        #expect(change.moved == ["\(test.plugins)/A.so"] && change.restored == nil && change.starting.isEmpty)
        #expect(change.stopping.map(\.name) == ["A"])
        #expect(names.isEmpty && test.host.modules.isEmpty)
        #expect(test.failure("A")?.code == .moduleUnavailable)
        let kept = test.host.keptVersions(of: "A")
        #expect(kept.map(\.version) == ["1.0.0"] && kept[0].file == "\(test.plugins)/A.so" && !kept[0].isServing)
        #expect(eventually { test.changes.contains(where: \.isRemoval) })
    }

    @Test func `A removal is refused while other modules depend on the module, and says which and why`() throws {
        try put("A")
        try put("B", requires: "A")
        try put("C", requires: "B")
        try test.start()
        let error = try error { try test.host.remove("A") }
        #expect(error.code == .required)
        #expect(error.message.contains("B 1.0.0") && error.message.contains("C 1.0.0"))
        #expect(error.message.contains("B waits: it requires the module A"))
        #expect(names == ["A.so", "B.so", "C.so"] && test.answer("C") == "1.0.0")
        #expect(throws: Never.self) { try test.host.remove("C") }
    }

    @Test func `A forced removal first stops the dependents, in order`() throws {
        try put("A")
        try put("B", requires: "A")
        try put("C", requires: "B")
        try test.start()
        let change = try test.host.remove("A", force: true)
        #expect(change.stopping.map(\.name) == ["C", "B", "A"])
        #expect(test.states == ["B.so": "waiting", "C.so": "waiting"])
        try test.host.rollback("A")
        #expect(test.answer("C") == "1.0.0")
    }

    @Test func `A waiting module is not loaded again while its file stays the same`() throws {
        try put("A")
        try put("B", requires: "A")
        try test.start()
        try test.host.remove("A", force: true)
        // A different modification time makes the host examine the file again.
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSinceNow: -3600)], ofItemAtPath: "\(test.plugins)/B.so")
        #expect(try test.waitForChanges())
        let told = test.changes.filter { if case .waiting = $0 { $0.file == "B.so" } else { false } }
        #expect(told.count == 1)
        #expect(test.states["B.so"] == "waiting")
        try put("A")
        #expect(eventually { test.answer("B") == "1.0.0" })
    }

    @Test func `A waiting module is not reported again when its file is opened for writing but not written`() throws {
        try put("A")
        try put("B", requires: "A")
        try test.start()
        try test.host.remove("A", force: true)
        let path = "\(test.plugins)/B.so"
        let writer = Glibc.open(path, O_WRONLY | O_CLOEXEC)
        try #require(writer >= 0)
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSinceNow: -3600)], ofItemAtPath: path)
        #expect(eventually { test.status("B.so")?.error?.message.contains("is being written") == true })
        close(writer)
        #expect(eventually { test.status("B.so")?.error?.code == .missingRequirement })
        #expect(try test.waitForChanges())
        let told = test.changes.filter { if case .waiting = $0 { $0.file == "B.so" } else { false } }
        #expect(told.count == 1)
        try put("A")
        #expect(eventually { test.answer("B") == "1.0.0" })
    }

    @Test func `A dry run reports the planned change and does nothing`() throws {
        try put("A")
        try put("B", requires: "A")
        try test.start()
        let generations = test.host.generations.map(\.number)
        #expect(try error { try test.host.remove("A", dryRun: true) }.code == .required)
        let change = try test.host.remove("A", force: true, dryRun: true)
        #expect(change.stopping.map(\.name) == ["B", "A"] && change.description.contains("stops B 1.0.0: B waits"))
        #expect(names == ["A.so", "B.so"] && test.host.generations.map(\.number) == generations)
        #expect(test.host.keptVersions(of: "A").isEmpty)
    }

    @Test func `All files of the module are removed, and none of them takes over`() throws {
        try put("A", as: "A-1.0.so")
        try put("A", "1.1.0", as: "A-1.1.so")
        try test.start()
        #expect(try test.host.remove("A").moved.count == 2)
        #expect(names.isEmpty)
        #expect(test.host.keptVersions(of: "A").map(\.version) == ["1.1.0", "1.0.0"])
    }

    @Test func `A module that conflicted with the removed one starts afterwards`() throws {
        try put("A")
        try test.start()
        try CModule(name: "Rival", target: "A", answer: "rival").build(into: test.plugins, as: "Rival.so")
        #expect(eventually { test.states["Rival.so"] == "failed" })
        let change = try test.host.remove("A")
        #expect(change.starting.map(\.name) == ["Rival"] && change.starting[0].previous == nil)
        #expect(test.answer("A") == "rival")
    }

    @Test func `A file that cannot be moved leaves everything as it was`() throws {
        try put("A", as: "A-1.0.so")
        try put("A", "1.1.0", as: "A-1.1.so")
        try test.folder.folder("state")
        try test.folder.file("state/versions")  // No folder can be made there.
        try test.start()
        let generation = test.status("A-1.1.so")?.generation
        let error = try error { try test.host.remove("A") }
        #expect(error.code == .unreadable && error.message.contains("remains"))
        #expect(names == ["A-1.0.so", "A-1.1.so"])
        #expect(test.status("A-1.1.so")?.generation == generation && test.answer("A") == "1.1.0")
    }

    @Test func `An unknown module and one of the program have different errors`() throws {
        try put("Accounts")
        try test.host.register(Manifest("Clock", version: "1.0.0") { Target("Clock") { Action("year") { 2026 } } })
        #expect(try error { try test.host.remove("Accounts") }.code == .hostStopped)
        try test.start()
        let unknown = try error { try test.host.remove("Acounts") }
        #expect(unknown.code == .unknownModule && unknown.message.contains("Did you mean “Accounts”?"))
        #expect(try error { try test.host.remove("Clock") }.code == .conflict)
    }

    @Test func `A file that has different content by now is not moved`() throws {
        try put("A")
        try test.start()
        try test.folder.file("plugins/.new", Data("text".utf8))
        rename("\(test.plugins)/.new", "\(test.plugins)/A.so")
        #expect(eventually { test.status("A.so")?.error?.code == .invalidFile })
        #expect(try error { try test.host.remove("A") }.code == .conflict)
        #expect(test.answer("A") == "1.0.0")
    }

    @Test func `Code that runs in a change cannot make another change`() throws {
        try put("A")
        let heard = Heard()
        let subscription = test.host.on("module.added") { [host = test.host] _ in
            do throws(PluginError) { try host.remove("A") } catch { heard.code.withLock { $0 = error.code } }
        }
        defer { subscription.cancel() }
        try test.start()
        #expect(eventually { heard.code.withLock { $0 } != nil })
        #expect(heard.code.withLock { $0 } == .circularWait && test.answer("A") == "1.0.0")
    }

    private final class Heard: Sendable { let code = Mutex<PluginError.Code?>(nil) }
}
