import CDispatch
import Foundation
import PluginABI
import Testing

@testable import PluginFile
@testable import PluginHost
@testable import TestSupport

/// A state folder that another user could have written, and the versions that it contains.
@Suite struct StoreTrustTests {
    let folder: TemporaryFolder
    let store: VersionStore
    var state: String { "\(folder.path)/state" }
    private let other: uid_t = 4711

    init() throws {
        folder = try TemporaryFolder()
        try folder.folder("plugins")
        store = VersionStore(stateFolder: "\(folder.path)/state")
        let module = try folder.copy(CFixture.build(CFixture.entry), as: "plugins/M.so")
        try store.keep(
            file: module, module: "M", version: #require(SemanticVersion("1.0.0")), folder: "\(folder.path)/plugins")
    }

    /// The folder of the only version.
    private func entry() throws -> String { try #require(store.versions(of: "M").first).path }

    @Test(
        .enabled(if: geteuid() == 0, "only root can give files to another user"),
        arguments: [
            "", "/versions", "/versions/HOME", "/versions/HOME/ENTRY", "/versions/HOME/ENTRY/0",
            "/versions/HOME/ENTRY/version.json",
        ])
    func `A version of which a part belongs to another user is reported and not used`(part: String) throws {
        let entry = try entry()
        let home = (entry as NSString).deletingLastPathComponent
        let path =
            part.hasPrefix("/versions/HOME/ENTRY")
            ? entry + part.dropFirst("/versions/HOME/ENTRY".count)
            : part == "/versions/HOME" ? home : state + part
        let version = try #require(store.versions(of: "M").first)
        try #require(chown(path, other, other) == 0)
        #expect(store.versions(of: "M").isEmpty && store.versions(of: "M", folder: "\(folder.path)/plugins").isEmpty)
        let problem = try #require(store.problems.first)
        #expect(problem.code == .untrusted && problem.message.contains("owner uid 4711"))
        #expect(VersionStore(stateFolder: state, checksTrust: false).versions(of: "M") == [version])
        guard !part.hasPrefix("/versions/HOME") else { return }
        let error = #expect(throws: PluginError.self) { try store.restore(version, to: "\(folder.path)/plugins") }
        #expect(error?.code == .untrusted && error?.message.contains("owner uid 4711") == true)
        // No part of the version was used.
        var status = stat()
        #expect(stat(path, &status) == 0 && status.st_uid == other)
    }

    @Test func `A version that others can write is not used`() throws {
        let entry = try entry()
        for path in [entry, "\(entry)/0", "\(entry)/version.json", state] {
            var status = stat()
            try #require(stat(path, &status) == 0 && chmod(path, 0o777) == 0)
            #expect(store.versions(of: "M").isEmpty && store.problems.map(\.code).contains(.untrusted))
            #expect(store.leftOut(of: "M").map(\.code) == [.untrusted])
            chmod(path, status.st_mode & 0o7777)
            #expect(store.versions(of: "M").count == 1 && store.leftOut(of: "M").isEmpty)
        }
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give files to another user"))
    func `A quarantine and a journal of another user are ignored`() async throws {
        let state = "\(folder.path)/other"
        await #expect(processExitsWith: .signal(SIGKILL)) { [state = state as String] in
            Journal(stateFolder: state).during(step: .opening, file: "/plugins/a.so", digest: 42, size: 1) {
                _ = kill(getpid(), SIGKILL)
            }
        }
        let journals = try FileManager.default.contentsOfDirectory(atPath: "\(state)/journal")
        let journal = "\(state)/journal/\(try #require(journals.first))"
        try #require(chown(journal, other, other) == 0)
        #expect(Journal(stateFolder: state).quarantinedFiles.isEmpty)
        try #require(chown(journal, 0, 0) == 0)
        #expect(Journal(stateFolder: state).quarantinedFiles.count == 1)
        try #require(chown("\(state)/quarantine.json", other, other) == 0)
        #expect(Journal(stateFolder: state).quarantinedFiles.isEmpty)
        try #require(chown("\(state)/quarantine.json", 0, 0) == 0 && chown(state, other, other) == 0)
        let distrusting = Journal(stateFolder: state)
        #expect(distrusting.quarantinedFiles.isEmpty && distrusting.problem?.code == .untrusted)
    }
}
