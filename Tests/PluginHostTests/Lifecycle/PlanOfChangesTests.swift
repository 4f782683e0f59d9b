import PluginABI
import Testing

@testable import PluginFile
@testable import PluginHost
@testable import TestSupport

/// Plans of the modules that have changed, in place of plans of all.
@Suite struct PlanOfChangesTests {
    private let host = PluginHost(.init(folders: []))
    private let words = PlanTests()

    /// What serves, and the files, after each of a series of random changes.
    private struct State {
        var folders = FolderContents()
        var serving = Serving()
        var generations: [Generation] = []
        var routes = Routes()

        func plan() -> Plan { Plan(Array(folders.records.values), serving, nil, routes) }

        func plan(of names: Set<String>, _ settled: SettledModules) -> Plan {
            var present = Serving()
            for name in names { present.modules[name] = serving.modules[name] }
            return Plan(
                settled.records(of: names, in: folders), present, nil, routes,
                besides: .init(modules: settled, besides: names))
        }

        /// Carries out a plan.
        mutating func apply(_ plan: Plan, _ newcomers: [ObjectIdentifier: Newcomer]) {
            let before = generations
            generations = plan.generations(with: newcomers, among: before)
            let change = ModuleChange(from: before, to: generations)
            routes = routes.with(
                generations, without: change.gone.flatMap(\.routes), adding: change.new.flatMap(\.routes))
            let served = plan.serving.map { candidate in
                var served =
                    candidate.served
                    ?? Served(
                        newcomers[ObjectIdentifier(candidate.module)]!.generation, candidate.module,
                        path: candidate.path)
                if candidate.isInFolder { served.path = candidate.path }
                return served
            }
            serving.replace(by: served, among: plan.names)
            for (path, verdict) in plan.verdicts {
                if let record = folders.records[path]?.decided(verdict) { folders.judge(record) }
            }
        }
    }

    private func file(_ random: inout some RandomNumberGenerator) -> String {
        let path = "\("abcdefgh".randomElement(using: &random)!).so"
        let kind = ["", "", "", "", "broken ", "library "].randomElement(using: &random)!
        let (name, version) = ("ABCDEFGH".randomElement(using: &random)!, Int.random(in: 1...3, using: &random))
        // Files of equal content have equal manifests.
        let content = Int.random(in: 1...4, using: &random)
        var details = SplitMix(seed: UInt64(content * 1000 + version * 100) + UInt64(name.asciiValue!))
        var text = "\(path) \(kind)\(name) \(version).0.0 #\(content)"
        let others = "ABCDEFGHX".filter { $0 != name }
        if Bool.random(using: &details) { text += " needs \(others.randomElement(using: &details)!)" }
        if Bool.random(using: &details) { text += " route app://\("xyz".randomElement(using: &details)!)" }
        switch Int.random(in: 0..<3, using: &details) {
        case 0: text += " service S\(Int.random(in: 1...3, using: &details)):1.0.0:0"
        case 1: text += " targets T\(Int.random(in: 1...4, using: &details))"
        default: break
        }
        return text
    }

    @Test(arguments: 1...30)
    func `A plan of what has changed has the same result as a plan of all`(seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        var state = State()
        let settled = SettledModules(state.folders, state.serving, .none)
        var parts = 0
        for _ in 0..<60 {
            for _ in 0...Int.random(in: 0...1, using: &random) {
                if Int.random(in: 0..<4, using: &random) == 0, let path = state.folders.records.keys.min() {
                    state.folders.remove(path.path)
                } else {
                    state.folders.put(try words.record(file(&random)))
                }
            }
            settled.note(state.folders.takeUnplanned(), state.folders)
            var names = settled.affected(by: state.folders, starting: []) ?? []
            let whole = state.plan()
            var part = state.plan(of: names, settled)
            if part.dependsOnOrder {
                part = whole
                names = Set(state.folders.records.values.compactMap(\.claimedModule?.name))
                    .union(state.serving.modules.keys)
            } else {
                parts += 1
            }
            var newcomers: [ObjectIdentifier: Newcomer] = [:]
            for candidate in part.serving + whole.serving where candidate.served == nil {
                newcomers[ObjectIdentifier(candidate.module)] = Newcomer(
                    generation: newcomers[ObjectIdentifier(candidate.module)]?.generation
                        ?? Generation(candidate.module, core: host.core, configuration: [:]), candidate: candidate)
            }
            #expect(part.leaving.map(\.name) == whole.leaving.map(\.name))
            for (path, verdict) in whole.verdicts {
                #expect((part.verdicts[path] ?? state.folders.records[path]?.verdict) == verdict)
            }
            var other = state
            state.apply(part, newcomers)
            other.apply(whole, newcomers)
            #expect(state.generations.map(\.number) == other.generations.map(\.number))
            let paths = state.serving.modules.mapValues(\.path)
            #expect(paths == other.serving.modules.mapValues(\.path))
            settled.refresh(names, state.folders, state.serving, .none)
        }
        #expect(parts > 0)
        host.shutdown()
    }

    @Test func `Changes of too many files are a change of the folder`() {
        var changes = ChangedFiles()
        for number in 0..<ChangedFiles.filesMax { changes.add(file: "f/\(number).so", in: "f") }
        #expect(changes.files["f"]??.count == ChangedFiles.filesMax)
        changes.add(file: "f/more.so", in: "f")
        #expect(changes.files["f"] == .some(nil))
        changes.add(file: "f/another.so", in: "f")
        #expect(changes.files["f"] == .some(nil))
        var others = ChangedFiles(in: ["g"])
        others.add(changes)
        #expect(others.folders == ["f", "g"])
    }
}
