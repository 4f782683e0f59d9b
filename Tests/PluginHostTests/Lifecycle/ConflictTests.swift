import Foundation
import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// Two files of one module, or two modules that claim the same name. Each case is tried with both files present at the
/// start, and with the files added one after the other in either order: the same file serves.
@Suite(.timeLimit(.minutes(30)), .serialized) struct ConflictTests {
    enum Arrival: CaseIterable { case together, firstEarlier, secondEarlier }

    /// A host with a plugins folder to which two files were added.
    private func host(
        _ arrival: Arrival, _ first: (file: String, module: CModule), _ second: (file: String, module: CModule)
    ) throws -> TestHost {
        let test = try TestHost()
        let files = arrival == .secondEarlier ? [second, first] : [first, second]
        for (index, file) in files.enumerated() {
            try file.module.build(into: test.plugins, as: file.file)
            if index == 0, arrival != .together { try test.start() }
        }
        if arrival == .together { try test.start() }
        #expect(eventually { test.states.count == 2 && !test.states.values.contains("waiting") })
        return test
    }

    @Test(arguments: Arrival.allCases)
    func `Of two versions, the higher one serves, and the other is superseded`(arrival: Arrival) throws {
        let test = try host(
            arrival, ("A-1.9.0.so", CModule(version: "1.9.0", answer: "old")),
            ("A-1.10.0.so", CModule(version: "1.10.0", answer: "new")))
        #expect(eventually { test.states == ["A-1.9.0.so": "superseded", "A-1.10.0.so": "active"] })
        #expect(eventually { test.answer() == "new" })
        #expect(test.status("A-1.9.0.so")?.note?.contains("A-1.10.0.so") == true)
    }

    @Test(arguments: Arrival.allCases)
    func `Of equal versions with the same bytes, one serves`(arrival: Arrival) throws {
        let test = try host(arrival, ("a.so", CModule()), ("b.so", CModule()))
        #expect(eventually { test.states.values.sorted() == ["active", "superseded"] })
        #expect(test.answer() == "yes")
    }

    @Test func `Of equal files, one serves, even if the other one has served before and ended`() throws {
        let test = try TestHost()
        try CModule().build(into: test.plugins, as: "b.so")
        try test.start()
        try copyFile("\(test.plugins)/b.so", to: "\(test.plugins)/a.so")
        #expect(eventually { test.states == ["a.so": "superseded", "b.so": "active"] })
        try CModule(version: "2.0.0", answer: "new").build(into: test.plugins, as: "c.so")
        #expect(eventually { test.changes.contains(where: \.isRetirement) })
        #expect(unlink("\(test.plugins)/c.so") == 0)
        #expect(eventually { test.states == ["a.so": "active", "b.so": "superseded"] })
        #expect(test.answer() == "yes")
    }

    @Test(arguments: Arrival.allCases)
    func `Of equal versions with different bytes, the first by file name serves, and the other conflicts`(
        arrival: Arrival
    ) throws {
        let test = try host(arrival, ("a.so", CModule(answer: "a")), ("b.so", CModule(answer: "b")))
        #expect(eventually { test.states == ["a.so": "active", "b.so": "failed"] })
        #expect(eventually { test.answer() == "a" })
        let error = test.status("b.so")?.error
        #expect(error?.code == .conflict)
        #expect(error?.message.contains("\(test.plugins)/a.so") == true)
        #expect(error?.message.contains("\(test.plugins)/b.so") == true)
    }

    @Test func `A module that claims another's target is refused as a whole, and the error names both`() throws {
        let test = try TestHost()
        try CModule(name: "Owner", target: "Shop").build(into: test.plugins, as: "owner.so")
        try test.start()
        var thief = CModule(name: "Thief", target: "Shop", answer: "stolen")
        thief.setUp = "abort();"
        try thief.build(into: test.plugins, as: "thief.so")
        #expect(eventually { test.states["thief.so"] == "failed" })
        let error = test.status("thief.so")?.error
        #expect(error?.code == .conflict)
        for word in ["Owner", "Thief", "Shop", "owner.so", "thief.so"] {
            #expect(error?.message.contains(word) == true, "\(error?.message ?? "")")
        }
        #expect(test.answer("Shop") == "yes")
    }

    @Test func `A higher version that cannot be activated leaves the lower one serving`() throws {
        let test = try TestHost()
        try CModule(version: "1.0.0", answer: "old").build(into: test.plugins, as: "a-1.so")
        try test.start()
        var new = CModule(version: "2.0.0", answer: "new")
        new.setUp = "refuse(call, \"not yet\"); return;"
        try new.build(into: test.plugins, as: "a-2.so")
        #expect(eventually { test.states == ["a-1.so": "active", "a-2.so": "failed"] })
        #expect(test.answer() == "old")
    }

    @Test func `A version that is superseded is torn down after its last call`() throws {
        let test = try TestHost()
        let (notes, gate) = ("\(test.folder.path)/notes", "\(test.folder.path)/gate")
        var old = CModule(version: "1.0.0", answer: "old")
        old.body = """
            note("\(notes)", "begin\\n"); while (access("\(gate)", F_OK) != 0) usleep(1000); note("\(notes)", "end\\n");
            """
        old.tearDown = "note(\"\(notes)\", \"tearDown\\n\");"
        try old.build(into: test.plugins, as: "a-1.so")
        try test.start()
        let done = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            #expect(test.answer() == "old")
            done.signal()
        }
        #expect(eventually { access(notes, F_OK) == 0 })
        try CModule(version: "2.0.0", answer: "new").build(into: test.plugins, as: "a-2.so")
        #expect(eventually { test.states == ["a-1.so": "superseded", "a-2.so": "active"] })
        #expect(test.answer() == "new")
        try test.folder.file("gate")
        done.wait()
        #expect(eventually { (try? String(contentsOfFile: notes, encoding: .utf8)) == "begin\nend\ntearDown\n" })
    }

    @Test func `A module continues to serve under the new name of its file`() throws {
        let test = try TestHost()
        try CModule().build(into: test.plugins, as: "a.so")
        try test.start()
        let generation = try #require(test.status("a.so")?.generation)
        rename("\(test.plugins)/a.so", "\(test.plugins)/b.so")
        #expect(eventually { test.states == ["b.so": "active"] })
        #expect(test.status("b.so")?.generation == generation)
        #expect(test.answer() == "yes")
        #expect(try test.waitForChanges())
        #expect(!test.changes.contains { $0.isRemoval || $0.isReplacement })
    }

    @Test func `A copy of the file that serves does not replace it, whatever its name`() throws {
        let test = try TestHost()
        try CModule().build(into: test.plugins, as: "b.so")
        try test.start()
        let generation = try #require(test.status("b.so")?.generation)
        for name in ["a.so", "c.so"] { try CModule().build(into: test.plugins, as: name) }
        #expect(eventually { test.states == ["a.so": "superseded", "b.so": "active", "c.so": "superseded"] })
        #expect(test.status("b.so")?.generation == generation)
    }

    @Test func `A superseded file is reported once, however many files follow`() throws {
        let test = try TestHost()
        for version in 1...2 {
            try CModule(version: "\(version).0.0").build(into: test.plugins, as: "a-\(version).so")
        }
        try test.start()
        try CModule(version: "0.5.0").build(into: test.plugins, as: "a-0.so")
        #expect(eventually { test.states["a-0.so"] == "superseded" })
        #expect(try test.waitForChanges())
        #expect(test.changes.compactMap(\.file).filter { $0 == "a-1.so" }.isEmpty)
        #expect(test.changes.compactMap(\.file).filter { $0 == "a-0.so" }.count == 1)
    }
}
