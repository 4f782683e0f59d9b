import Foundation
import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

@Suite struct JournalTests {
    let folder: TemporaryFolder
    var state: String { "\(folder.path)/state" }

    init() throws { folder = try TemporaryFolder() }

    @Test func `A file that was being started when the host died is quarantined`() async throws {
        await die(during: .entry)
        let journal = Journal(stateFolder: state)
        #expect(journal.problem == nil)
        let entry = try #require(journal.quarantined(path: "/plugins/a.so", digest: 42))
        #expect(entry.step == .entry && entry.file == "/plugins/a.so" && abs(entry.date.timeIntervalSinceNow) < 600)
        #expect(entry.message.contains("died during the entry of /plugins/a.so"))
        #expect(journal.quarantined(path: "/plugins/b.so", digest: 42) == nil)
    }

    @Test func `A quarantine outlives further starts, until it is released`() async throws {
        await die(during: .opening)
        for _ in 0..<2 { #expect(Journal(stateFolder: state).quarantinedFiles.count == 1) }
        Journal(stateFolder: state).clearSuspicion("/plugins/other.so")
        #expect(Journal(stateFolder: state).quarantinedFiles.count == 1)
        Journal(stateFolder: state).clearSuspicion("/plugins/a.so")
        #expect(Journal(stateFolder: state).quarantinedFiles.isEmpty)
        for _ in 0..<2 { await die(during: .activation) }
        Journal(stateFolder: state).clearSuspicion("/plugins/a.so")
        #expect(Journal(stateFolder: state).quarantinedFiles.count == 1)
        let journal = Journal(stateFolder: state)
        journal.release()
        #expect(journal.quarantinedFiles.isEmpty)
    }

    @Test func `A suspect remains one until no start of its file runs code any more`() async throws {
        await die(during: .opening)
        let journal = Journal(stateFolder: state)
        for number in [100, 101, 102] as [UInt64] {
            journal.begin(.activation, file: "/plugins/a.so", digest: 42, size: 1, number: number)
        }
        journal.clearSuspicion("/plugins/a.so")
        journal.end(.activation, 100)
        journal.endStarts()
        #expect(journal.quarantinedFiles.count == 1)
        journal.end(.activation, 101)
        #expect(journal.quarantinedFiles.count == 1)
        journal.end(.activation, 102)
        #expect(journal.quarantinedFiles.isEmpty)
        journal.close()
    }

    @Test func `A file is suspected after one kill, and quarantined after two in the same step`() async throws {
        await die(during: .opening)
        #expect(Journal(stateFolder: state).quarantinedFiles.map(\.isSuspected) == [true])
        await die(during: .entry)
        #expect(Journal(stateFolder: state).quarantinedFiles.map(\.isSuspected) == [true])
        await die(during: .entry)
        #expect(Journal(stateFolder: state).quarantinedFiles.map(\.isSuspected) == [nil])
    }

    @Test func `A quarantine is for one content of a file: it does not apply to another, and outlives it`()
        async throws
    {
        await die(during: .opening)
        #expect(Journal(stateFolder: state).quarantined(path: "/plugins/a.so", digest: 43) == nil)
        #expect(Journal(stateFolder: state).quarantined(path: "/plugins/a.so", digest: 42) != nil)
    }

    @Test func `A journal records nothing after it is closed`() {
        let journal = Journal(stateFolder: state)
        journal.begin(.activation, file: "/a.so", digest: 1, size: 1, number: 1)
        journal.close()
        journal.end(.activation, 1)
        journal.begin(.activation, file: "/a.so", digest: 1, size: 1, number: 1)
        #expect(!journal.isStarting(1))
    }

    @Test func `A step that is over does not quarantine its file, even if it failed`() async throws {
        let state = state
        await #expect(processExitsWith: .signal(SIGKILL)) { [state = state as String] in
            let journal = Journal(stateFolder: state)
            journal.during(step: .opening, file: "/a.so", digest: 1, size: 1) {
                journal.during(step: .entry, file: "/b.so", digest: 2, size: 1) {}
            }
            try? journal.during(step: .entry, file: "/c.so", digest: 3, size: 1) { throw CancellationError() }
            journal.during(step: .activation, file: "/d.so", digest: 4, size: 1) {
                journal.during(step: .activation, file: "/e.so", digest: 5, size: 1) {}
                _ = kill(getpid(), SIGKILL)
            }
        }
        #expect(Journal(stateFolder: state).quarantinedFiles.map(\.file) == ["/d.so"])
    }

    @Test func `A step that still runs when the other modules have started is named`() async throws {
        let state = state
        await #expect(processExitsWith: .signal(SIGKILL)) { [state = state as String] in
            let journal = Journal(stateFolder: state)
            journal.during(step: .opening, file: "/a.so", digest: 1, size: 1, number: 100) {}
            journal.begin(.activation, file: "/a.so", digest: 1, size: 1, number: 100)
            journal.begin(.opening, file: "/b.so", digest: 2, size: 1, number: 101)
            journal.endStarts()
            journal.end(.opening, 101)
            _ = kill(getpid(), SIGKILL)
        }
        let entries = Journal(stateFolder: state).quarantinedFiles
        #expect(entries.map(\.file) == ["/a.so"] && entries.map(\.step) == [.activation])
    }

    @Test func `The journal of a living host is left alone`() {
        let journal = Journal(stateFolder: state)
        journal.during(step: .opening, file: "/a.so", digest: 1, size: 1) {
            #expect(Journal(stateFolder: state).quarantinedFiles.isEmpty)
        }
    }

    @Test func `A host that ends in an orderly way leaves nothing behind`() throws {
        _ = Journal(stateFolder: state)
        #expect(try FileManager.default.contentsOfDirectory(atPath: "\(state)/journal").isEmpty)
    }

    @Test func `Broken journals and a broken quarantine are ignored`() throws {
        try folder.folder("state/journal")
        try folder.file("state/journal/1-2.jsonl", Data("{\"file\":\n\u{0}garbage\n".utf8))
        try folder.file("state/quarantine.json", Data("[{".utf8))
        let journal = Journal(stateFolder: state)
        #expect(journal.problem == nil && journal.quarantinedFiles.isEmpty)
    }

    @Test func `A state folder that cannot be created is a problem, not a failure`() throws {
        let journal = Journal(stateFolder: try folder.file("file") + "/state")
        #expect(journal.problem?.message.contains("will not be remembered") == true)
        #expect(journal.during(step: .opening, file: "/a.so", digest: 1, size: 1) { 7 } == 7)
        #expect(journal.quarantined(path: "/a.so", digest: 1) == nil)
        journal.release()
        // No user can create a folder there.
        let problem = Journal(stateFolder: "/sys/pluginhost/state").problem?.message ?? ""
        #expect(problem.contains("/sys/pluginhost/state"), "\(problem)")
        #expect(!problem.contains("No such file") && !problem.contains("doesn’t exist"), "\(problem)")
    }

    /// A host dies during a step of /plugins/a.so, whose digest is 42.
    private func die(during step: Journal.Step) async {

        await #expect(processExitsWith: .signal(SIGKILL)) { [state = state as String, name = step.rawValue as String] in
            let step = try #require(Journal.Step(rawValue: name))
            Journal(stateFolder: state).during(step: step, file: "/plugins/a.so", digest: 42, size: 1) {
                _ = kill(getpid(), SIGKILL)
            }
        }
    }
}

extension Journal {
    /// Runs `body` as a step of the start of a file.
    func during<Result, Failure: Error>(
        step: Step, file: String, digest: UInt64, size: Int, number: UInt64 = StagedFile.nextNumber(),
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        begin(step, file: file, digest: digest, size: size, number: number)
        defer { end(step, number) }
        return try body()
    }
}
