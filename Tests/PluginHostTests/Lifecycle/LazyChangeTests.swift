import Foundation
import PluginABI
import Synchronization
import Testing

@testable import PluginFile
@testable import PluginHost
@testable import TestSupport

/// The reports of a host about modules that have not started.
@Suite(.timeLimit(.minutes(30))) struct LazyChangeTests {
    private let lazy: LazyModules

    init() throws { lazy = try LazyModules() }

    /// The changes of a host as texts: what happened, to which version, and which version preceded it.
    private func changes(_ host: TestHost) -> [String] {
        host.changes.compactMap { change in
            switch change {
            case .added(let module): "added \(module.title)"
            case .started(let module): "started \(module.title)"
            case .replaced(let module, let before):
                "replaced \(module.title) \(module.state) after \(before.version) \(before.state) \(before.number)"
            case .removed(let before, _): "removed \(before.title) \(before.state)"
            case .failed(let module, _): "failed \(module.title)"
            default: nil
            }
        }
    }

    private func newer(_ name: String, isSealed: Bool = true) -> CModule {
        var newer = lazy.module(name)
        (newer.version, newer.isSealed, newer.answer) = ("2.0.0", isSealed, "new")
        return newer
    }

    @Test func `A registered module is replaced and removed like one that serves`() async throws {
        let host = try lazy.makeHost([lazy.module("A")])
        let events = Mutex<[String]>([])
        let subscriptions = ["module.added", "module.replaced", "module.removed"].map { event in
            host.host.on(event) { parameters in
                let version = parameters["previousVersion"]?.string.map { " after \($0)" } ?? ""
                events.withLock { $0.append("\(event) \(parameters["name"]?.string ?? "")\(version)") }
            }
        }
        try lazy.module("B").build(into: host.plugins, as: "B.so")
        try host.host.lifecycle.update()
        try newer("B").build(into: host.plugins, as: "B.so")
        try host.host.lifecycle.update()
        #expect(host.states["B.so"] == "registered")
        try FileManager.default.removeItem(atPath: "\(host.plugins)/B.so")
        try host.host.lifecycle.update()
        let expected = [
            "added B 1.0.0", "replaced B 2.0.0 registered after 1.0.0 registered 0", "removed B 2.0.0 registered",
        ]
        #expect(await becomesTrue { changes(host) == expected })
        #expect(
            host.changes.map(\.description).suffix(2) == [
                "replaced B 1.0.0 with 2.0.0 from \(host.plugins)/B.so",
                "removed B 2.0.0: it was removed: \(host.plugins)/B.so is gone.",
            ])
        #expect(
            events.withLock { $0 } == [
                "module.added B", "module.replaced B after 1.0.0", "module.removed B",
            ])
        let error = try #require(host.failure("B"))
        #expect(error.code == .moduleUnavailable)
        #expect(error.message.contains("B.so is gone"))
        #expect(lazy.notes == "")
        for subscription in subscriptions { subscription.cancel() }
    }

    @Test func `A registered module whose next version must start is replaced by it`() async throws {
        let host = try lazy.makeHost([lazy.module("A")])
        try newer("A", isSealed: false).build(into: host.plugins, as: "A.so")
        try host.host.lifecycle.update()
        #expect(await becomesTrue { changes(host) == ["replaced A 2.0.0 active after 1.0.0 registered 0"] })
    }

    @Test func `A file that changed before the first call replaces the registered module when it is called`()
        async throws
    {
        let host = try lazy.makeHost([lazy.module("A")])
        try newer("A").build(into: host.plugins, as: "A.so")
        #expect(host.answer("A") == "new")
        #expect(await becomesTrue { changes(host) == ["replaced A 2.0.0 active after 1.0.0 registered 0"] })
    }

    @Test func `Nothing is reported about a registered module whose file is renamed`() async throws {
        let host = try lazy.makeHost([lazy.module("A")])
        try FileManager.default.moveItem(atPath: "\(host.plugins)/A.so", toPath: "\(host.plugins)/Z.so")
        try host.host.lifecycle.update()
        #expect(host.states == ["Z.so": "registered"])
        #expect(host.answer("A") == "A")
        #expect(await becomesTrue { changes(host) == ["started A 1.0.0"] })
    }

    @Test func `A module whose start fails is failed, and not removed as well`() async throws {
        var broken = lazy.module("A")
        broken.setUp! += "refuse(call, \"No.\"); return;"
        let host = try lazy.makeHost([broken])
        #expect(host.failure("A")?.code == .moduleUnavailable)
        #expect(await becomesTrue { changes(host) == ["failed A 1.0.0"] })
    }

    @Test func `A version that has not started can be rolled back to after it was replaced`() throws {
        let host = try lazy.makeHost([lazy.module("A"), lazy.module("B")])
        #expect(host.host.lifecycle.holdFiles() == 2)
        let new = try Data(contentsOf: URL(filePath: newer("A").build()))
        try host.put(new, "A.so")
        try host.host.lifecycle.update()
        #expect(host.states["A.so"] == "registered" && lazy.notes == "")
        #expect(host.host.keptVersions(of: "A").map(\.version) == ["1.0.0"])
        try host.host.rollback("A")
        #expect(host.answer("A") == "A")
        try host.host.rollback("A")
        #expect(host.answer("A") == "new")
        #expect(host.answer("B") == "B")
        #expect(host.host.keptVersions(of: "B").isEmpty && host.host.problems.isEmpty)
    }

    @Test func `A version that has not started can be rolled back to after it was deleted`() throws {
        let host = try lazy.makeHost([lazy.module("A"), lazy.module("B")])
        #expect(host.host.lifecycle.holdFiles() == 2)
        try FileManager.default.removeItem(atPath: "\(host.plugins)/A.so")
        try FileManager.default.moveItem(atPath: "\(host.plugins)/B.so", toPath: "\(host.plugins)/C.so")
        try host.host.lifecycle.update()
        #expect(host.host.keptVersions(of: "A").map(\.version) == ["1.0.0"])
        #expect(host.host.keptVersions(of: "B").isEmpty)
        #expect(host.host.lifecycle.holdFiles() == 1)
        try host.host.rollback("A")
        #expect(host.answer("A") == "A")
    }

    @Test func `A version that was overwritten before it started is not kept, unless the host removes it`() throws {
        let host = try lazy.makeHost([lazy.module("A")])
        #expect(host.host.lifecycle.holdFiles() == 1)
        try writeFile(Data(contentsOf: URL(filePath: newer("A").build())), to: "\(host.plugins)/A.so")
        try host.host.lifecycle.update()
        #expect(host.states["A.so"] == "registered")
        let error = #expect(throws: PluginError.self) { try host.host.rollback("A") }
        #expect(error?.code == .noVersionKept)
        try host.host.remove("A")
        try host.host.rollback("A")
        #expect(host.answer("A") == "new")
    }

    @Test func `Files are held soon after the start, and not after the end of the host`() async throws {
        let host = try lazy.makeHost([lazy.module("A"), lazy.module("B")])
        let folder = host.plugins.withoutLinks
        func held() throws -> Int {
            try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count {
                (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)"))?
                    .hasPrefix("\(folder)/") == true
            }
        }
        #expect(try await becomesTrue { try held() == 2 })
        host.host.shutdown()
        #expect(try held() == 0)
    }

    @Test func `A file is held until its module has started`() throws {
        let host = try lazy.makeHost([lazy.module("A"), lazy.module("B")])
        #expect(host.host.lifecycle.holdFiles() == 2)
        #expect(host.answer("A") == "A")
        #expect(host.host.lifecycle.holdFiles() == 1)
        #expect(host.host.keptVersions(of: "A").isEmpty)
    }

    @Test func `Services of files are listed before the modules with their targets start`() async throws {
        let host = try lazy.makeHost([lazy.module("A")]) { configuration in
            let path = configuration.folders[0]
            try? #"{"S": {"target": "A", "version": "1.0.0"}}"#.write(
                toFile: "\(path)/x.services.json", atomically: true, encoding: .utf8)
        }
        try host.host.addService(Service("T", version: "1.0.0", target: "A"))
        func list() -> [String] {
            host.host.services.map { "\($0.name) \($0.module) \($0.target) \($0.file.map { _ in "file" } ?? "")" }
        }
        #expect(list() == ["S A A file", "T A A "])
        #expect(lazy.notes == "")
        #expect(try host.host.serviceInfo("S").module == "A")
        #expect(list() == ["S A A file", "T A A "])
        #expect(lazy.setUps == ["A"])
    }

    @Test func `Calls that come while a registered module is replaced or removed reach a version or name it`()
        async throws
    {
        let (old, new) = (try lazy.module("A").build(), try newer("A").build())
        let contents = try [old, new].map { try Data(contentsOf: URL(filePath: $0)) }
        for round in 0..<6 {
            let host = try lazy.makeHost([lazy.module("A")])
            async let change: Void = onThread {
                if round.isMultiple(of: 2) {
                    try host.put(contents[1], "A.so")
                } else {
                    try FileManager.default.removeItem(atPath: "\(host.plugins)/A.so")
                }
                try host.host.lifecycle.update()
            }
            let outcomes = try await onThreads(4) { _ in host.answer("A") ?? host.failure("A")?.code.rawValue ?? "A" }
            try await change
            let errors: Set = ["moduleUnavailable", "unknownTarget"]
            #expect(
                outcomes.allSatisfy { ["A", "new"].contains($0) || !round.isMultiple(of: 2) && errors.contains($0) })
            if round.isMultiple(of: 2) {
                #expect(host.answer("A") == "new")
            } else {
                #expect(host.failure("A")?.code == .moduleUnavailable)
            }
            host.host.shutdown()
        }
    }
}
