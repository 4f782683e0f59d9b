import Foundation
import PluginABI
import Synchronization
import Testing

@testable import PluginFacades
@testable import PluginHost
@testable import TestSupport

/// A module that calls `Desk` through its façade.
struct Clerk: Module {
    static let manifest = Manifest("Clerk", version: "1.0.0") {
        Target("Clerk") {
            Action("author", .context(), .required("title", String.self)) { context, title in
                try DeskFacade.Desk(context).find(title: title)?.author?.name ?? "nobody"
            }
            Action("open", .context(), .required("title", String.self)) { context, title in
                try DeskFacade.Desk(context).open(title: title).title()
            }
        }
    }
}

@Suite(.timeLimit(.minutes(30))) struct DeskTests {
    private func desk() throws -> (test: TestHost, desk: DeskFacade.Desk) {
        let test = try TestHost([built("libDesk.so")])
        return (test, DeskFacade.Desk(test.host))
    }

    @Test func `the façade of a module whose actions have every kind of type is up to date`() throws {
        let file = "\(repository)/Tests/PluginFacadesTests/DeskFacade.swift"
        let report = try PluginHost.inspect(file: built("libDesk.so"), trustsEveryone: true).derivingTypes()
        #expect(
            try String(contentsOfFile: file, encoding: .utf8)
                == Facade(manifest: #require(report.json["manifest"]).json).text,
            "Make it again: pluginhost facade .build/debug/libDesk.so > Tests/PluginFacadesTests/DeskFacade.swift")
    }

    @Test func `a program passes and gets records, enumerations, lists, maps and objects`() async throws {
        let (test, desk) = try desk()
        let first = DeskFacade.Draft(title: "a", author: .init(name: "A", level: .high), tags: ["x"], extra: ["n": 1])
        let second = DeskFacade.Draft(title: "b", tags: [])
        #expect(try desk.import(drafts: [second, first]) == [first, second])
        #expect(try desk.import(drafts: [second, first], order: .date) == [second, first])
        #expect(try desk.find(title: "") == nil)
        #expect(try desk.find(title: "t")?.author?.level == .high)
        #expect(try desk.thumbnail(title: "") == nil && desk.thumbnail(title: "ab") == [97, 98])
        #expect(try desk.count(drafts: ["x": [first, second], "y": []]) == ["x": 2, "y": 0])
        #expect(try desk.tree().children.map(\.name) == ["leaf"])
        #expect(try await desk.later() == [.init(name: "L", level: .low)])
        let editors = try desk.all()
        #expect(try editors.map { (editor) throws(PluginError) in try editor.title() } == ["a", "b"])
        let opened = try await DeskFacade.Routes.ordered(order: .date).open(test.host)
        #expect(opened == "by date")
    }

    @Test func `the back data of a page has its type`() async throws {
        let (test, _) = try desk()
        struct Silent: Presenter {
            func opened(_ page: OpenPage, by transition: Transition, in layers: [PageLayer]) {}
            func closed(_ pages: [OpenPage], in layers: [PageLayer]) {}
        }
        let drafts = Mutex<[DeskFacade.Draft]>([])
        let navigator = Navigator(test.host, presenter: Silent())
        try await navigator.open("Desk", "open", ["title": "t"], by: .presentInNewStack) { backData in
            let draft = try? DeskFacade.Editor.backData(backData.get())
            drafts.withLock { $0 += draft.map { [$0] } ?? [] }
        }
        try await navigator.dismiss()
        #expect(drafts.withLock(\.self) == [.init(title: "t", tags: [])])
        #expect(throws: PluginError.self) { try DeskFacade.Editor.backData("text") }
    }

    @Test func `another module calls through the façade`() throws {
        let (test, _) = try desk()
        try test.host.register(Clerk.manifest)
        #expect(try test.host.perform("Clerk", "author", ["t"]) == "A")
        #expect(try test.host.perform("Clerk", "author", [""]) == "nobody")
        #expect(try test.host.perform("Clerk", "open", ["page"]) == "page")
    }

    @Test func `a result that is not of its declared type is an error with the path of the part`() throws {
        let good: Value = ["title": "t", "tags": ["x"]]
        for (value, problem) in [
            (["title": "t"], "result[1].tags is missing"),
            (["title": "t", "tags": ["x", 1]], "result[1].tags[1] is of type int, where a string was expected."),
            (["title": nil, "tags": []], "result[1].title is null, where a string was expected."),
            (
                ["title": "t", "tags": [], "author": ["name": "n", "level": 3]],
                "result[1].author.level is 3; it may be -1, 0 or 10."
            ),
            ("text", "result[1] is of type string, where a map was expected"),
        ] as [(Value, String)] {
            let error = #expect(throws: PluginError.self) {
                try Value.list([good, value]).typed(of: "Desk/import", as: [DeskFacade.Draft].self)
            }
            #expect(error?.code == .invalidResult && error?.message.contains(problem) == true, "\(error as Any)")
        }
    }
}
