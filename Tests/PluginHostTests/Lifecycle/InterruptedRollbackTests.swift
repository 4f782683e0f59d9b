import Foundation
import PluginABI
import Testing

@testable import PluginFile
@testable import PluginHost
@testable import TestSupport

/// A host that is killed while it puts a version back.
@Suite(.timeLimit(.minutes(30)), .serialized) struct InterruptedRollbackTests {
    let folder: TemporaryFolder
    var plugins: String { "\(folder.path)/plugins" }

    init() throws {
        folder = try TemporaryFolder()
        try folder.folder("plugins")
    }

    private func file(_ name: String, _ content: String) throws {
        try folder.file("plugins/\(name)", Data(content.utf8))
    }

    private func content(_ name: String) -> String? {
        (try? Data(contentsOf: URL(fileURLWithPath: "\(plugins)/\(name)"))).map { String(decoding: $0, as: UTF8.self) }
    }

    private var names: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: plugins).sorted()) ?? []
    }

    private static func digest(_ content: String) -> UInt64 {
        var digest = FileDigest(size: content.utf8.count)
        Array(content.utf8).withUnsafeBytes { digest.mix($0) }
        return digest.value
    }

    /// Begins to change `A.so` (replaced), `B.so` (moved away) and `lib.so` (new), and dies after some steps.
    private func die(after steps: Int) async throws {
        for name in names { unlink("\(plugins)/\(name)") }
        try file("A.so", "old A")
        try file("B.so", "old B")
        await #expect(processExitsWith: .signal(SIGKILL)) { [plugins = plugins as String, steps = steps as Int] in
            let aside = try SetAside(
                ["A.so", "B.so", "lib.so"].map { "\(plugins)/\($0)" },
                newDigests: [
                    PathKey("\(plugins)/A.so"): InterruptedRollbackTests.digest("new A"),
                    PathKey("\(plugins)/lib.so"): InterruptedRollbackTests.digest("new lib"),
                ])
            let changes: [() throws -> Void] = [
                { try writeFile(Data("half".utf8), to: "\(plugins)/.pluginhost-0123456789abcdef.new") },
                { try writeFile(Data("new lib".utf8), to: "\(plugins)/lib.so") },
                {
                    try writeFile(Data("new A".utf8), to: "\(plugins)/.new")
                    rename("\(plugins)/.new", "\(plugins)/A.so")
                },
                { unlink("\(plugins)/B.so") },
                { aside.discard() },
            ]
            for change in changes.prefix(steps) { try change() }
            _ = kill(getpid(), SIGKILL)
        }
    }

    @Test func `Whenever the host dies, the next one finds all files as before the change, or all as after it`()
        async throws
    {
        for steps in 0...5 {
            try await die(after: steps)
            try UndoFile.recover(in: plugins)
            if steps < 5 {
                #expect(names == ["A.so", "B.so"], "after \(steps) steps")
                #expect(content("A.so") == "old A" && content("B.so") == "old B")
            } else {
                #expect(names == ["A.so", "lib.so"] && content("A.so") == "new A")
            }
        }
    }

    @Test func `Files that were added since stay`() async throws {
        try await die(after: 4)
        try file("A.so", "newest A")
        try UndoFile.recover(in: plugins)
        #expect(content("A.so") == "newest A" && content("lib.so") == "new lib")
        #expect(names == ["A.so", "lib.so"])
    }

    @Test func `Files that a living host has set aside stay, and another change waits for it`() throws {
        try file("A.so", "old A")
        let aside = try SetAside(["\(plugins)/A.so"])
        let before = names
        try UndoFile.recover(in: plugins)
        #expect(names == before && before.count == 3)
        let error = #expect(throws: PluginError.self) { try SetAside(["\(plugins)/A.so"]) }
        #expect(error?.message.contains("Another host is changing") == true)
        #expect(names == before)
        aside.putBack()
        #expect(names == ["A.so"] && content("A.so") == "old A")
    }

    @Test func `Only files that are named as the host names its own are removed`() throws {
        let kept = [
            ".pluginhost-0123.new", ".pluginhost-0123456789abcdeg.new", ".pluginhost-0123456789abcdef.newer",
            "pluginhost-0123456789abcdef.new", ".hidden",
        ]
        for name in kept { try file(name, "") }
        try folder.folder("plugins/.pluginhost-0123456789abcdef.aside")
        try file(".pluginhost-fedcba9876543210.new", "")
        try UndoFile.recover(in: plugins)
        #expect(Set(names) == Set(kept + [".pluginhost-0123456789abcdef.aside"]))
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give files to another user"))
    func `An undo file of another user is left alone`() async throws {
        try await die(after: 3)
        try #require(chown("\(plugins)/\(UndoFile.name)", 4711, 4711) == 0)
        let before = names
        let error = #expect(throws: PluginError.self) { try UndoFile.recover(in: plugins) }
        #expect(error?.code == .untrusted && names == before && content("A.so") == "new A")
    }

    // MARK: A whole rollback

    /// A host that keeps A 1.0.0 while 1.1.0 serves.
    private static func host(_ folder: String) -> PluginHost {
        var configuration = PluginHost.Configuration(folders: ["\(folder)/plugins"])
        configuration.stagingFolder = "\(folder)/staging"
        configuration.stateFolder = "\(folder)/state"
        configuration.watches = false
        return PluginHost(configuration)
    }

    @Test(arguments: ["entry", "activate"])
    func `A version that was being put back when the host was killed can be put back`(
        step: String
    ) async throws {
        let mark = "\(folder.path)/kills"
        let code = "if (access(\"\(mark)\", F_OK) == 0) kill(getpid(), SIGKILL);"
        var old = CModule(name: "A", version: "1.0.0", answer: "1.0.0")
        if step == "entry" { old.entry = code } else { old.activate = code }
        try old.build(into: plugins, as: "A.so")
        let first = Self.host(folder.path)
        try first.start()
        try CModule(name: "A", version: "1.1.0", answer: "1.1.0").build(into: plugins, as: "A.so")
        first.shutdown()
        // The old version is kept when the host notices the new one.
        try old.build(into: plugins, as: "A.so")
        let host = Self.host(folder.path)
        try host.start()
        try host.remove("A")
        try CModule(name: "A", version: "1.1.0", answer: "1.1.0").build(into: plugins, as: "A.so")
        host.shutdown()
        try folder.file("kills")
        await #expect(processExitsWith: .signal(SIGKILL)) { [folder = folder.path as String] in
            let host = InterruptedRollbackTests.host(folder)
            try host.start()
            try host.rollback("A")
        }
        unlink(mark)
        let next = Self.host(folder.path)
        defer { next.shutdown() }
        try next.start()
        // The folder is as before the rollback, and nothing is left behind.
        #expect(try next.perform("A", "answer") == "1.1.0" && names == ["A.so"])
        try next.rollback("A")
        #expect(try next.perform("A", "answer") == "1.0.0" && names == ["A.so"])
        #expect(Journal(stateFolder: "\(folder.path)/state").quarantinedFiles.isEmpty)
    }

    @Test func `A rollback tries a suspected version whose file is gone, but names --retry for a certain one`()
        async throws
    {
        let mark = "\(folder.path)/kills"
        let code = "if (access(\"\(mark)\", F_OK) == 0) kill(getpid(), SIGKILL);"
        try CModule(name: "A", version: "1.0.0", answer: "1.0.0", entry: code).build(into: plugins, as: "A.so")
        let first = Self.host(folder.path)
        try first.start()
        try first.remove("A")
        first.shutdown()
        func dieInRollback() async throws {
            try folder.file("kills")
            await #expect(processExitsWith: .signal(SIGKILL)) { [folder = folder.path as String] in
                let host = InterruptedRollbackTests.host(folder)
                try host.start()
                try host.rollback("A")
            }
            unlink(mark)
        }
        try await dieInRollback()
        let host = Self.host(folder.path)
        try host.start()
        #expect(names == [])
        try host.rollback("A")
        #expect(try host.perform("A", "answer") == "1.0.0")
        try host.remove("A")
        host.shutdown()
        for _ in 0..<2 { try await dieInRollback() }
        let last = Self.host(folder.path)
        defer { last.shutdown() }
        try last.start()
        let error = #expect(throws: PluginError.self) { try last.rollback("A") }
        #expect(error?.code == .quarantined && error?.message.contains("--retry") == true)
    }
}
