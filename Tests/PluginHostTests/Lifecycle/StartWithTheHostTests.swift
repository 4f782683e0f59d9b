import Foundation
import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// Which modules start together with a lazy host, and what registered modules claim.
@Suite(.timeLimit(.minutes(30))) struct StartWithTheHostTests {
    private let lazy: LazyModules

    init() throws { lazy = try LazyModules() }

    @Test func `Modules start with the host if they must, or are required by one that does`() throws {
        var (initialized, told) = (lazy.module("Init"), lazy.module("Told"))
        initialized.hooks = ["init": ""]
        told.events = [("host.willTerminate", "", "")]
        var patient = lazy.module("Lazy", more: "\"start\": \"lazy\",")
        patient.hooks = ["init": ""]
        let eager = lazy.module("Eager", more: "\"start\": \"eager\", \"requires\": [{\"module\": \"Needed\"}],")
        var unsealed = lazy.module("Unsealed")
        unsealed.isSealed = false
        let host = try lazy.makeHost(
            [
                initialized, told, patient, eager, lazy.module("Needed"), unsealed, lazy.module("Named"),
                lazy.module("Other"),
            ]
        ) { $0.eagerModules = ["Named"] }
        let resting = host.states.filter { $0.value != "active" }
        #expect(resting == ["Lazy.so": "registered", "Other.so": "registered"])
        #expect(host.answer("Lazy") == "Lazy")
    }

    @Test func `A module starts after those that it requires`() throws {
        let host = try lazy.makeHost([
            lazy.module("A", more: "\"requires\": [{\"module\": \"B\"}],"),
            lazy.module("B", more: "\"requires\": [{\"module\": \"C\"}],"), lazy.module("C"), lazy.module("D"),
            lazy.module("E", more: "\"requires\": [{\"module\": \"F\"}],"),
        ])
        #expect(host.states["E.so"] == "waiting")
        #expect(host.answer("A") == "A")
        #expect(lazy.notes.components(separatedBy: " ").filter { !$0.hasPrefix("open") } == ["C", "B", "A", ""])
        #expect(host.states["D.so"] == "registered")
    }

    @Test func `Registered modules conflict like those that serve, and are superseded`() throws {
        let host = try lazy.makeHost([lazy.module("M"), lazy.module("B")])
        // The file name of the other module sorts first.
        var other = lazy.module("A")
        other.target = "M"
        try other.build(into: host.plugins, as: "0.so")
        var newer = lazy.module("B")
        newer.version = "2.0.0"
        try newer.build(into: host.plugins, as: "newer.so")
        try host.host.lifecycle.update()
        #expect(host.status("0.so")?.error?.code == .conflict)
        #expect(
            host.states == ["0.so": "failed", "M.so": "registered", "B.so": "superseded", "newer.so": "registered"])
        #expect(lazy.notes == "")
        #expect(host.answer("M") == "M")
        #expect(host.answer("B") == "B")
        #expect(host.status("0.so")?.error?.code == .conflict)
        #expect(host.states["newer.so"] == "active")
    }

    @Test func `A file that replaces a module that serves is started`() throws {
        let host = try lazy.makeHost([lazy.module("A")])
        #expect(host.answer("A") == "A")
        var newer = lazy.module("A")
        newer.version = "2.0.0"
        newer.answer = "new"
        try newer.build(into: host.plugins, as: "A.so")
        try host.host.lifecycle.update()
        #expect(host.status("A.so")?.state == .active)
        #expect(host.answer("A") == "new")
    }

    @Test(arguments: [false, true]) func `A module starts when a rule names its interceptor`(later: Bool) throws {
        let rule = InterceptorRule("I", "guard", for: .target("B"))
        var first = lazy.module("I")
        first.manifest = """
            {"name": "I", "version": "1.0.0", "hooks": ["setUp"], "interceptors": [{"name": "guard"}],
             "targets": [{"name": "I", "actions": [{"name": "answer"}]}]}
            """
        first.moreFunctions = "{TEXT(\"~guard\"), action_answer, NULL}"
        let host = try lazy.makeHost([first, lazy.module("B")]) { if !later { $0.interceptors = [rule] } }
        #expect(host.states["I.so"] == (later ? "registered" : "active"))
        if later { try host.host.updateInterceptors([rule]) }
        #expect(host.answer("B") == "I")
        #expect(host.states == ["I.so": "active", "B.so": "active"])
    }

    @Test func `A registered module is removed and put back, and others may depend on it`() throws {
        let host = try lazy.makeHost([
            lazy.module("A"), lazy.module("B", more: "\"requires\": [{\"module\": \"A\"}],"), lazy.module("C"),
        ])
        let error = #expect(throws: PluginError.self) { try host.host.remove("A") }
        #expect(error?.code == .required)
        let change = try host.host.remove("A", force: true, dryRun: true)
        #expect(change.stopping.map(\.name).sorted() == ["A", "B"])
        #expect(change.starting.isEmpty)
        try host.host.remove("A", force: true)
        #expect(host.states == ["B.so": "waiting", "C.so": "registered"])
        #expect(lazy.notes == "")
        try host.host.rollback("A")
        #expect(host.states == ["A.so": "active", "B.so": "registered", "C.so": "registered"])
        #expect(host.answer("B") == "B")
    }

    @Test(.disabled(if: isSanitized)) func `The first call of an isolated module starts its process`() throws {
        let host = try lazy.makeHost([lazy.module("A")]) { $0.isolation.modules = .all }
        #expect(host.states == ["A.so": "registered"])
        #expect(host.answer("A") == "A")
        #expect(host.status("A.so")?.process != nil)
    }
}
