import PluginABI
import Testing

@testable import PluginFile
@testable import PluginHost
@testable import TestSupport

/// Plans that register all modules, and the records that they are made from.
@Suite struct RegistrationPlanTests {
    private let host = PluginHost(.init(folders: []))
    private let words = PlanTests()

    /// Returns the record of a file with a known module, in the words of ``PlanTests``.
    private func known(_ text: String) throws -> FileRecord {
        let record = try words.record(text)
        let open = try #require(record.module)
        let index = KnownText(try #require(open.outline.bytes))
        let module = LoadedModule(
            known: open.staged, toolchain: "", abiMinor: 0,
            manifest: try #require(KnownManifest(KnownText(""), index, abiMinor: 0)), routes: open.routes,
            program: host.core.program)
        return record.with(.module(.init(module: module)))
    }

    @Test(arguments: 1...60)
    func `The plan is that of a comparison of all candidates`(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        // The fewer names there are, the more often they are claimed twice.
        let names = [4, 40, 4_000][Int(seed % 3)]
        let records = try (0..<Int.random(in: 1...12, using: &random)).map { number in
            let name = "M\(Int.random(in: 0..<names, using: &random))"
            var text = "\(Int.random(in: 100...999, using: &random))-\(number).so \(name) 1.0.0"
            let claimed = Int.random(in: 0..<names, using: &random)
            if Bool.random(using: &random) { text += " route app://x\(claimed)" }
            switch Int.random(in: 0..<3, using: &random) {
            case 0: text += " service S\(claimed):1.0.0:\(number % 2)"
            case 1: text += " targets T\(claimed)"
            default: break
            }
            return try known(text)
        }
        var whole = Plan(records, Serving(), nil, Routes())
        whole.rest { _ in false }
        let isRegistered = whole.verdicts.values.allSatisfy { $0 == .serves }
        guard let registrations = Registrations(records, Routes()) else {
            // Services with several implementations are compared.
            return #expect(!isRegistered || Set(records.flatMap(\.services)).count < records.flatMap(\.services).count)
        }
        #expect(isRegistered)
        let plan = Plan(registrations)
        #expect(plan.serving.isEmpty && plan.leaving.isEmpty && plan.gone.isEmpty)
        #expect(plan.resting.map(\.path) == whole.resting.map(\.path))
        #expect(registrations.modules.modules.map(\.name) == whole.resting.map(\.outline.name))
        #expect(registrations.judged.map(\.path) == records.map(\.path).sorted())
        #expect(registrations.judged.allSatisfy { $0.verdict == .serves })
        func entries(_ change: RouteChange?) -> Set<ObjectIdentifier> {
            Set(change?.after.all.map { ObjectIdentifier($0) } ?? [])
        }
        #expect(entries(plan.routeChange) == entries(whole.routeChange))
    }

    @Test(arguments: [
        ["a.so A 1.0.0", "b.so A 1.1.0"], ["a.so A 1.0.0 targets T", "b.so B 1.0.0 targets T"],
        ["a.so A 1.0.0 service S:1.0.0:1", "b.so B 1.0.0 service S:1.0.0:1"],
        ["a.so A 1.0.0 route app://x/:a", "b.so B 1.0.0 route app://x/:b"], ["a.so A 1.0.0", "b.so B 1.0.0 needs A"],
    ])
    func `Modules that claim the same, or require others, are compared`(files: [String]) throws {
        #expect(Registrations(try files.map(known), Routes()) == nil)
        #expect(Registrations(try files[..<1].map(known), Routes()) != nil)
    }

    @Test func `Open modules are compared, and files without a module need no plan`() throws {
        let known = try known("a.so A 1.0.0")
        let error = PluginError(.invalidFile, "It is no module.")
        let failed = FileRecord(path: "b.so", folder: "", identity: nil, content: .failed(error, nil))
        #expect(Registrations([known, failed], Routes())?.judged.map(\.path) == ["a.so"])
        #expect(Registrations([known, try words.record("c.so C 1.0.0")], Routes()) == nil)
        #expect(Registrations([known, try words.record("c.so broken C 1.0.0")], Routes()) == nil)
        #expect(Registrations([failed], Routes()) == nil)
    }

    @Test func `A plan is that of the same records and routes only`() throws {
        let records = try ["a.so A 1.0.0", "b.so B 1.0.0"].map(known)
        let error = PluginError(.invalidFile, "It is no module.")
        let failed = FileRecord(path: "c.so", folder: "", identity: nil, content: .failed(error, nil))
        let routes = Routes()
        let plan = try #require(Registrations(records, routes))
        #expect(plan.areOf(records, routes))
        #expect(plan.areOf(records + [failed], routes))
        #expect(!plan.areOf(records, Routes()))
        #expect(!plan.areOf(Array(records[..<1]), routes))
        #expect(!plan.areOf(records.reversed(), routes))
        #expect(!plan.areOf([records[0], records[1].with(records[1].content)], routes))
    }

    // MARK: - The records

    private func contents(_ paths: [String], reserving count: Int = 2) throws -> FolderContents {
        var contents = FolderContents()
        contents.reserveCapacity(count)
        for path in paths { contents.put(try known("\(path) A 1.0.0")) }
        return contents
    }

    @Test func `Records are new until one is added again, judged or removed`() throws {
        let contents = try contents(["b.so", "a.so"])
        #expect(contents.newRecords?.map(\.path) == ["b.so", "a.so"])
        func areNew(after change: (inout FolderContents) throws -> Void) rethrows -> Bool {
            var copy = contents
            try change(&copy)
            return copy.newRecords != nil
        }
        #expect(try areNew { $0.put(try known("c.so A 1.0.0")) })
        #expect(try !areNew { $0.put(try known("a.so A 1.0.0")) })
        #expect(!areNew { $0.remove("a.so") })
        #expect(!areNew { $0.judge(contents.records["a.so"]!.decided(.serves)!) })
        #expect(!areNew { _ = $0.takeUnplanned() })
        #expect(try FolderContents(adding: known("a.so A 1.0.0")).newRecords == nil)
    }

    @Test func `If most files are new, all modules are planned`() throws {
        var contents = try contents(["a.so"], reserving: 65)
        #expect(contents.areAllUnplanned && contents.hasUnplanned && contents.unplanned.isEmpty)
        _ = contents.takeUnplanned()
        #expect(!contents.hasUnplanned)
        contents.reserveCapacity(64)
        contents.put(try known("b.so A 1.0.0"))
        #expect(!contents.areAllUnplanned && contents.unplanned == Set(paths: ["b.so"]))
    }

    @Test func `A module is unsettled if it was judged and does not serve`() throws {
        var contents = try contents(["a.so", "b.so"])
        #expect(contents.unsettled.isEmpty)
        contents.judge(contents.records["a.so"]!.decided(.refused(PluginError(.conflict, "It is taken.")))!)
        contents.judge(contents.records["b.so"]!.decided(.serves)!)
        #expect(contents.unsettled == Set(paths: ["a.so"]))
        contents.judge(contents.records["a.so"]!.decided(.superseded(by: "b.so"))!)
        #expect(contents.unsettled.isEmpty)
    }
}

extension FileRecord {
    /// The names of the services of the module.
    fileprivate var services: [String] { module?.outline.services.map(\.name) ?? [] }
}

extension FolderContents {
    fileprivate init(adding record: FileRecord) {
        self.init()
        put(record)
    }
}
