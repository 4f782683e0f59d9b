import FoundationEssentials
import PluginABI
import PluginFile

/// The decision about which file of each module should serve, and why others should not.
///
/// It depends on the files in the folders and on what already serves, never on the order in which files appeared: the
/// highest version that can start serves; among equal versions the file whose name sorts first. A module that serves
/// continues to serve if its file was renamed or copied, or if the new content of its file cannot be served. A module
/// that the program registers can only replace one that the program has registered, is not replaced by a file, and does
/// not wait.
struct Plan {
    /// A module that may serve under its name.
    struct Candidate: Sendable {
        let module: LoadedModule
        /// The path of the file that contains the module; if there is none, of the file that it was loaded from.
        let path: String
        /// The generation that already serves with this content, if any.
        var served: Served?
        /// Whether a file contains the module.
        let isInFolder: Bool

        var outline: ModuleOutline { module.outline }
        var fileName: String { path.fileName }
    }

    /// The modules that should serve, in the order of their start: those that the program registers, then the others.
    private(set) var serving: [Candidate] = []
    /// The modules that are known and not needed yet, in the order in which they would start.
    private(set) var resting: [Candidate] = []
    /// The change of the routes if ``serving`` and ``resting`` are served.
    let routeChange: RouteChange?
    /// The verdicts on all files that contain modules, by path; empty if ``registrations`` contains them.
    private(set) var verdicts: [PathKey: FileRecord.Verdict] = [:]
    /// The content of the plan, if it consists in registering all modules.
    private(set) var registrations: Registrations?
    /// The modules that serve now and should no longer serve, in the order of their start.
    private(set) var leaving: [Served] = []
    /// The modules that the plan is not about, which stay as they are; `nil` if it is about all.
    private let others: SettledModules.Others?
    /// The names of the modules that the plan is about; `nil` for all. The others stay as they are.
    private(set) var names: Set<String>?

    /// Whether ``serving`` is known to be in the order of the table: it was sorted as a whole, and no requirements make
    /// the order of some modules depend on others.
    var isInOrder: Bool {
        serving.first?.module.isRegistered != true && serving.allSatisfy(\.outline.requirements.isEmpty)
    }

    /// Whether it is known that none of the modules that the plan is not about has requirements.
    var othersAreFree: Bool { others?.modules.areFree == true }

    /// Whether modules have conflicting claims while a module of this plan has requirements. A plan of all modules,
    /// whose order also depends on these requirements, may then prefer another module.
    private(set) var dependsOnOrder = false

    /// The reason why the module that the program registers should not serve.
    private(set) var refusal: PluginError?

    /// - Parameters:
    ///   - records: The records of all files.
    ///   - present: The modules that serve now.
    ///   - change: The module that the program registers or unregisters.
    ///   - routes: The current routes, with those that were added, and without those that were removed, at run time.
    ///   - services: The services that the program has bound to targets.
    ///   - starting: The modules with a hook that has not returned yet, with the reason why they cannot be served.
    ///   - registered: The modules that are known and have names in the table.
    ///   - others: The modules that the plan is not about; `nil` if it is about all. Otherwise, the other
    ///     parameters concern only the modules that the plan is about.
    init(
        _ records: [FileRecord], _ present: Serving, _ change: ProgramChange?, _ routes: Routes,
        _ services: [ModuleManifest.Service] = [], starting: [ObjectIdentifier: PluginError] = [:],
        registered: [LoadedModule] = [], besides others: SettledModules.Others? = nil
    ) {
        self.others = others
        self.names = others.map { $0.besides.union(present.program.map(\.name)) }
        // A module whose process has ended is replaced, if only by another generation of the same file; but not before
        // the time of its restart.
        let served = Dictionary(
            uniqueKeysWithValues: present.modules.lazy.filter { !$0.value.module.isGone }.map { ($0.key, $0.value) })
        // The modules that serve or that a file contains, by name; `nil` stands for the one that serves.
        var claimants: [(name: String, file: Int?)] = served.keys.map { ($0, nil) }
        claimants.reserveCapacity(claimants.count + records.count)
        let taken = Self.takenFiles(records, served)
        for (index, record) in records.enumerated() {
            guard let name = record.claimedModule?.outline.name else { continue }
            if !taken.isEmpty, let owner = taken[record.path] {
                verdicts[record.path] = Self.refusal(of: record, owner)
            } else {
                claimants.append((name, index))
            }
        }
        claimants.sort { $0.name < $1.name }
        let byPath =
            served.isEmpty ? [:] : Dictionary(records.map { (PathKey($0.path), $0) }) { first, _ in first }
        var options = Options(
            program: Self.registered(present.program, change), served: present.all.map(\.generation), routes: routes,
            services: services, starting: starting, registered: registered, besides: others)
        options.reserveCapacity(claimants.count)
        var rest = claimants[...]
        while let name = rest.first?.name {
            let own = rest.prefix { $0.name == name }
            rest = rest[own.endIndex...]
            let ranked = Self.rank(own.compactMap { $0.file.map { records[$0] } }, served[name], byPath)
            if !ranked.isEmpty { options.add(ranked) }
        }
        options.choose()
        (serving, refusal, routeChange) = (options.serving, options.refusal, options.routeChange)
        judge(options)
        dependsOnOrder =
            options.groups.contains { $0.refusals.values.contains { $0.code == .conflict } }
            && records.contains { $0.claimedModule?.outline.requirements.isEmpty == false }
        let staying = Set(serving.compactMap { $0.served?.generation.number })
        leaving = present.all.filter { !staying.contains($0.generation.number) }
            .sorted { $0.generation.number < $1.generation.number }
    }

    /// Creates a plan that registers all modules.
    init(_ registrations: Registrations) {
        (routeChange, others, self.registrations) = (registrations.routeChange, nil, registrations)
        resting = registrations.modules.modules.map { Candidate(module: $0, path: $0.file, isInFolder: true) }
    }

    /// Creates a plan that puts modules to rest; everything else stays as it is.
    ///
    /// - Parameter modules: The modules that serve, each with what becomes registered in its place.
    init(resting modules: [(served: Served, known: LoadedModule)]) {
        (routeChange, others) = (nil, nil)
        resting = modules.map { Candidate(module: $0.known, path: $0.served.path, isInFolder: true) }
        leaving = modules.map(\.served)
        names = Set(leaving.map(\.name))
    }

    /// Moves the known modules that nothing needs yet from ``serving`` to ``resting``.
    ///
    /// - Parameter isNeeded: Whether a module that does not serve starts even if no other module requires it.
    mutating func rest(unless isNeeded: (Candidate) -> Bool) {
        var needed = serving.map { $0.served != nil || isNeeded($0) }
        guard needed.contains(false) else { return }
        guard needed.contains(true) else {
            (resting, serving) = (serving, [])
            return
        }
        require(from: &needed)
        resting = serving.indices.filter { !needed[$0] }.map { serving[$0] }
        serving = serving.indices.filter { needed[$0] }.map { serving[$0] }
    }

    /// Adds the modules that these modules require, directly or indirectly.
    ///
    /// - Parameter needed: Whether each module of ``serving`` is needed.
    private func require(from needed: inout [Bool]) {
        var active = others
        active?.areServing = true
        var provisions = Provisions(besides: active)
        for index in serving.indices where needed[index] { provisions.add(serving[index].outline) }
        var open = serving.indices.filter { needed[$0] && serving[$0].served == nil }
        while let index = open.popLast() {
            for requirement in serving[index].outline.requirements where !provisions.satisfies(requirement) {
                let provider = serving.indices.first {
                    !needed[$0] && serving[$0].outline.provides(requirement)
                }
                guard let provider else { continue }
                needed[provider] = true
                provisions.add(serving[provider].outline)
                open.append(provider)
            }
        }
    }

    /// Returns the part of the plan that starts one module and those that it requires; everything else stays as it is.
    /// `nil` if that is not possible.
    ///
    /// - Parameters:
    ///   - busy: The modules that other changes are already starting.
    /// - Throws: `circularWait` if the module requires one of them.
    func starting(
        _ name: String, besides context: ChangeContext, busy: Set<ObjectIdentifier>
    ) throws(PluginError) -> Plan? {
        var part = self
        part.serving = serving + resting
        part.rest { $0.outline.name == name }
        let fresh = part.serving.filter { $0.served == nil && context.serving.modules[$0.outline.name] == nil }
        guard fresh.contains(where: { $0.outline.name == name }) else { return nil }
        if let other = fresh.first(where: { busy.contains(ObjectIdentifier($0.module)) }) {
            throw .circularStart(name, requiring: other.outline.name)
        }
        part.names = Set(fresh.map(\.outline.name))
        let paths = Set(paths: fresh.map(\.path))
        part.verdicts = verdicts.filter { paths.contains($0.key) }
        part.serving = fresh
        part.leaving = []
        part.resting = []
        return part
    }

    /// Returns the modules that are registered when the plan has been carried out: those that rest, and those that were
    /// registered and are still starting.
    ///
    /// - Parameter present: The modules that are registered now.
    func registered(after present: KnownModules, in context: ChangeContext) -> [LoadedModule] {
        if let names {
            if resting.isEmpty, !names.contains(where: { present.module(named: $0) != nil }) { return present.modules }
            return present.modules.filter { !names.contains($0.name) }.adding(
                resting.map(\.module), areFree: othersAreFree)
        }
        var starting: Set<ObjectIdentifier> = []
        if !present.isEmpty, !context.starts.slow.isEmpty {
            for case (let path, .starts) in verdicts {
                guard let module = context.folders.records[path]?.module else { continue }
                starting.insert(ObjectIdentifier(module.registration))
            }
        }
        return present.modules.filter { starting.contains(ObjectIdentifier($0.registration)) }
            + resting.map(\.module)
    }

    /// Returns the modules that the program has registered after a change.
    private static func registered(_ present: [Served], _ change: ProgramChange?) -> [Candidate] {
        var candidates = present.map { Candidate(module: $0.module, path: $0.path, served: $0, isInFolder: false) }
        switch change {
        case .registers(let module, let old):
            candidates.removeAll { $0.module === old?.module }
            candidates.append(Candidate(module: module, path: module.file, isInFolder: false))
        case .unregisters(let served): candidates.removeAll { $0.module === served.module }
        case nil: break
        }
        return candidates
    }

    /// Returns the files from which modules serve but which now contain other modules, each with the module that
    /// serves. Such a file is more likely a mistake than intended. It is left out if another file contains the serving
    /// module.
    private static func takenFiles(_ records: [FileRecord], _ served: [String: Served]) -> [PathKey: Served] {
        if served.isEmpty { return [:] }
        // Several modules may have been loaded from one file, one after the other, and still serve.
        let owners = Dictionary(grouping: served.values) { PathKey($0.path) }
        let taken = records.filter { record in
            guard let module = record.module, let owners = owners[record.path] else { return false }
            return !owners.contains { $0.name == module.outline.name }
        }
        guard !taken.isEmpty else { return [:] }
        let present = Set(records.compactMap { $0.claimedModule?.outline.name })
        return taken.reduce(into: [:]) { result, record in
            let missing = (owners[record.path] ?? []).filter { !present.contains($0.name) }
            result[record.path] = missing.min { $0.name < $1.name }
        }
    }

    private static func refusal(of record: FileRecord, _ owner: Served) -> FileRecord.Verdict {
        guard let outline = record.claimedModule?.outline else { return .undecided }
        return .refused(
            PluginError(
                .conflict,
                "\(record.path) contained \(owner.name) \(owner.module.outline.version) and now contains "
                    + "\(outline.name) \(outline.version). \(owner.name) continues to serve. To remove it, "
                    + "delete the file first. Give \(outline.name) a file of its own."))
    }

    /// Returns the candidates of one module, best first.
    private static func rank(
        _ files: [FileRecord], _ served: Served?, _ records: [PathKey: FileRecord]
    ) -> [Candidate] {
        var ranked = files.compactMap { file in
            file.module.map { module in
                Candidate(
                    module: module, path: file.path,
                    served: served.flatMap { !$0.isRestarting && isSame($0.module, module) ? $0 : nil },
                    isInFolder: true)
            }
        }
        ranked.sort { left, right in
            if left.outline.version != right.outline.version { return left.outline.version > right.outline.version }
            if left.module.isLinked != right.module.isLinked { return left.module.isLinked }
            return left.path.sortsAsFile(before: right.path)
        }
        guard let served else { return ranked }
        // A copy whose name sorts first is not a reason to start the module again.
        if let index = ranked.firstIndex(where: { $0.served != nil }) {
            let own = ranked.firstIndex { $0.served != nil && $0.path.hasBytes(of: served.path) } ?? index
            ranked.insert(ranked.remove(at: own), at: index)
            for other in ranked.indices where other != index { ranked[other].served = nil }
        } else if records[PathKey(served.path)] != nil || !files.isEmpty {
            // If its successor fails, the module continues to serve.
            ranked.insert(
                Candidate(module: served.module, path: served.path, served: served, isInFolder: false),
                at: place(of: served, behind: ranked, records[PathKey(served.path)]))
        }
        return ranked
    }

    /// Returns where among the candidates to insert a module that serves, and whose content is no longer in a file. It
    /// precedes files with lower versions if the new content of its own file is unknown, or is a version that cannot be
    /// served; otherwise it is last.
    private static func place(of served: Served, behind ranked: [Candidate], _ record: FileRecord?) -> Int {
        guard let record, !record.isLibrary, record.claimedModule.map({ $0.outline.name == served.name }) ?? true
        else { return ranked.count }
        let successor = ranked.firstIndex { $0.path.hasBytes(of: served.path) }.map { $0 + 1 } ?? 0
        return ranked[successor...].firstIndex { $0.outline.version <= served.module.outline.version }
            ?? ranked.count
    }

    static func isSame(_ a: LoadedModule, _ b: LoadedModule) -> Bool {
        if a === b || a.registration === b.registration { return true }
        guard a.outline.version == b.outline.version else { return false }
        // A file with the version of a linked module counts as the same module, since there are no bytes to compare.
        if !a.isOpen || !b.isOpen { return a.staged.digest == b.staged.digest && a.staged.size == b.staged.size }
        return a.isLinked || b.isLinked || a.hasContent(of: b.staged) || b.hasContent(of: a.staged)
    }

    private mutating func judge(_ options: Options) {
        verdicts.reserveCapacity(options.groups.count)
        for group in options.groups {
            let chosen = group.isAdmitted ? group.chosen : nil
            for candidate in group.ranked where candidate.isInFolder {
                verdicts[candidate.path] =
                    if candidate.module === chosen?.module {
                        .serves
                    } else if let error = group.refusals[candidate.path] {
                        if error.code == .conflict {
                            .refused(error)
                        } else {
                            group.starting.contains(PathKey(candidate.path)) ? .starts(error) : .waits(error)
                        }
                    } else if let chosen {
                        Self.verdict(on: candidate, behind: chosen)
                    } else {
                        .undecided
                    }
            }
        }
    }

    private static func verdict(on candidate: Candidate, behind chosen: Candidate) -> FileRecord.Verdict {
        guard chosen.isInFolder, candidate.outline.version == chosen.outline.version,
            !isSame(candidate.module, chosen.module)
        else { return .superseded(by: chosen.path) }
        return .refused(
            PluginError(
                .conflict,
                "\(candidate.path) and \(chosen.path) are both \(chosen.outline.name) \(chosen.outline.version), "
                    + "with different content. \(chosen.fileName) serves, because its name sorts first; give one of "
                    + "them another version, or delete it."))
    }
}

extension PluginError {
    /// The error of a start that would need to wait for another one, which waits for it.
    static func circularStart(_ name: String, requiring other: String) -> PluginError {
        PluginError(
            .circularWait,
            other.hasBytes(of: name)
                ? "\(name) is starting already, and the start waits for this call."
                : "\(name) requires \(other), which is starting and waits for this call. Make the call when \(other) has "
                    + "started.")
    }
}
