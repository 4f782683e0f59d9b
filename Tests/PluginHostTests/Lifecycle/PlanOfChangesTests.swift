import PluginABI
import Testing

@testable import PluginFile
@testable import PluginHost
@testable import TestSupport

/// Plans of the modules that have changed, instead of plans of all modules.
@Suite struct PlanOfChangesTests {
    private let host = PluginHost(.init(folders: []))
    private let words = PlanTests()

    /// The serving modules, the registered modules, and the files after each of a series of random changes.
    private struct State {
        var folders = FolderContents()
        var serving = Serving()
        var known = KnownModules.none
        var generations: [Generation] = []
        var routes = Routes()
        var absences = UnavailableModules()

        var names: Set<String> {
            Set(folders.records.values.compactMap(\.claimedModule?.name)).union(serving.modules.keys)
                .union(known.modules.map(\.name))
        }

        /// The path of the file of each module that serves.
        var paths: [String: String] {
            Dictionary(uniqueKeysWithValues: serving.modules.map { ($0.key, $0.value.path) })
        }

        func plan() -> Plan {
            Plan(Array(folders.records.values), serving, nil, routes, registered: known.modules)
        }

        func plan(of names: Set<String>, _ settled: SettledModules) -> Plan {
            var present = Serving()
            present.program = serving.program
            for name in names { present.modules[name] = serving.modules[name] }
            return Plan(
                settled.records(of: names, in: folders), present, nil, routes,
                registered: names.compactMap { known.module(named: $0) },
                besides: .init(modules: settled, besides: names))
        }

        /// Carries out a plan.
        mutating func apply(_ plan: Plan, _ newcomers: [ObjectIdentifier: Newcomer]) {
            let (before, registered) = (generations, known)
            generations = plan.generations(with: newcomers, among: before)
            let resting = plan.resting.map(\.module)
            known = registered.changed(
                to: plan.names.map { names in registered.modules.filter { !names.contains($0.name) }.adding(resting) }
                    ?? resting)
            let change = ModuleChange(from: before, to: generations)
            let gone = change.gone.flatMap(\.routes) + registered.routes(besides: known)
            let new = change.new.flatMap(\.routes) + known.routes(besides: registered)
            func entries(_ routes: Routes) -> Set<ObjectIdentifier> {
                Set(routes.table.all.map { ObjectIdentifier($0) })
            }
            let remade = entries(routes.with(generations, without: gone, adding: new, as: nil))
            routes = routes.with(generations, without: gone, adding: new, as: plan.routeChange)
            #expect(entries(routes) == remade)
            let served = plan.serving.map { candidate in
                var served =
                    candidate.served
                    ?? Served(
                        newcomers[ObjectIdentifier(candidate.module)]!.generation, candidate.module,
                        path: candidate.path)
                if candidate.isInFolder { served.path = candidate.path }
                return served
            }
            let unavailability = Unavailability(of: plan, folders, registered: registered, then: known)
            unavailability.note(in: &serving)
            absences = unavailability.absences(serving)
            serving.replace(by: served, among: plan.names)
            for (path, verdict) in plan.verdicts {
                if let record = folders.records[path]?.decided(verdict) { folders.judge(record) }
            }
        }
    }

    private static let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWX")

    private func file(_ random: inout some RandomNumberGenerator, among count: Int) -> String {
        let letters = Self.letters[..<count]
        let path = "\(letters.randomElement(using: &random)!.lowercased()).so"
        let kind = ["", "", "", "", "broken ", "library "].randomElement(using: &random)!
        let (name, version) = (letters.randomElement(using: &random)!, Int.random(in: 1...3, using: &random))
        // Files with equal content have equal manifests.
        let content = Int.random(in: 1...4, using: &random)
        var details = SplitMix(seed: UInt64(content * 1000 + version * 100) + UInt64(name.asciiValue!))
        var text = "\(path) \(kind)\(name) \(version).0.0 #\(content)"
        let others = (letters + ["Y"]).filter { $0 != name }
        let most = count / 2
        if Int.random(in: 0..<most, using: &details) < 2 { text += " needs \(others.randomElement(using: &details)!)" }
        let service = Int.random(in: 1...most, using: &details)
        if Int.random(in: 0..<most, using: &details) == 0 { text += " needs-service S\(service % most + 1)" }
        if Bool.random(using: &details) { text += " route app://x\(Int.random(in: 1...most, using: &details))" }
        switch Int.random(in: 0..<3, using: &details) {
        case 0: text += " service S\(service):1.0.0:\(content)"
        case 1: text += " targets T\(Int.random(in: 1...most, using: &details))"
        default: break
        }
        return text
    }

    private func serve(_ text: String, in state: inout State) throws {
        let record = try words.record(text)
        let module = try #require(record.module)
        let generation = Generation(module, core: host.core, configuration: [:])
        state.serving.program = [Served(generation, module, path: record.path)]
        state.generations = [generation]
    }

    @Test(arguments: [8, 24], 1...30)
    func `A plan of what has changed has the same result as a plan of all`(count: Int, seed: UInt64) throws {
        var random = SplitMix(seed: seed)
        var state = State()
        if seed % 3 == 0 { try serve("program program Prog 1.0.0 service S4:1.0.0:9 targets T1", in: &state) }
        // Whether modules start when they are needed.
        let isLazy = seed % 2 == 0
        let settled = SettledModules(state.folders, state.serving, state.known)
        var parts = 0
        for step in 0..<60 {
            for _ in 0...(step == 0 ? count : Int.random(in: 0...1, using: &random)) {
                if Int.random(in: 0..<4, using: &random) == 0, let path = state.folders.records.keys.min() {
                    state.folders.remove(path.path)
                } else {
                    state.folders.put(try words.record(file(&random, among: count)))
                }
            }
            var wanted: Set<String> = []
            if Bool.random(using: &random), let name = state.known.modules.map(\.name).randomElement(using: &random) {
                wanted.insert(name)
            }
            let isNeeded = { (candidate: Plan.Candidate) in
                let name = candidate.outline.name
                return !isLazy || state.serving.modules[name] != nil || wanted.contains(name)
            }
            settled.note(state.folders.takeUnplanned(), state.folders)
            var whole = state.plan()
            var names = settled.affected(by: state.folders, starting: wanted)
            var part = names.map { state.plan(of: $0, settled) } ?? whole
            if names == nil || part.dependsOnOrder { (part, names) = (whole, nil) } else { parts += 1 }
            part.rest(unless: isNeeded)
            whole.rest(unless: isNeeded)
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
            let all = state.names
            var other = state
            state.apply(part, newcomers)
            other.apply(whole, newcomers)
            #expect(state.generations.map(\.number) == other.generations.map(\.number))
            #expect(state.paths == other.paths)
            #expect(state.absences == other.absences)
            #expect(Set(state.known.modules.map(\.name)) == Set(other.known.modules.map(\.name)))
            settled.refresh(names ?? all, state.folders, state.serving, state.known)
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
