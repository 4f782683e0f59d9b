import PluginABI
import PluginFile

/// What is known of the modules that serve or are registered, so that a change of a few files does not require a plan of
/// all: what they claim, provide and require.
///
/// It is derived from the records of files, from what serves and from what is registered. When a plan has been carried
/// out, it is updated for the modules that the plan was about.
final class SettledModules {
    private struct Kept {
        let module: LoadedModule
        let path: String
        let isServing: Bool
    }

    typealias Subject = ModuleManifest.Requirement.Subject

    /// The modules that serve or are registered, by name, except those that the program has registered.
    private var kept: [String: Kept] = [:]
    /// The names of the modules that own targets and services.
    private var targets: [String: String] = [:]
    private var services: [ModuleManifest.Service.Key: String] = [:]
    /// The names of the modules that offer services, by the names of the services.
    private var offers: [String: Set<String>] = [:]
    /// The names of the modules that have requirements, by what they require.
    private var requiring: [Subject: Set<String>] = [:]
    /// The files of each module, and the module in each file.
    private var files: [String: Set<PathKey>] = [:]
    private var names: [PathKey: String] = [:]
    /// The names of the modules that serve and were loaded from a file.
    private var servedFiles: [PathKey: Set<String>] = [:]
    /// The names of the modules that serve in processes of their own.
    private var isolated: Set<String> = []
    /// The modules that are part of every plan: one of their files waits or was refused, or what serves differs from
    /// their files.
    private var unsettled: Set<String> = []
    /// The modules whose files have changed since they were planned.
    private var changed: Set<String> = []

    init(_ folders: FolderContents, _ serving: Serving, _ known: KnownModules) {
        for (path, record) in folders.records {
            guard let name = record.claimedModule?.name else { continue }
            names[path] = name
            files[name, default: []].insert(path)
        }
        let all = Set(files.keys).union(serving.modules.keys).union(known.modules.map(\.name))
        refresh(all, folders, serving, known)
    }

    /// Records which files have changed.
    func note(_ paths: Set<PathKey>, _ folders: FolderContents) {
        for path in paths {
            changed.formUnion(servedFiles[path] ?? [])
            let (before, now) = (names[path], folders.records[path]?.claimedModule?.name)
            changed.formUnion([before, now].compactMap(\.self))
            guard before != now else { continue }
            names[path] = now
            if let before { files.remove(path, of: before) }
            if let now { files[now, default: []].insert(path) }
        }
    }

    /// Updates what is known of modules, after a plan of them has been carried out.
    func refresh(_ modules: Set<String>, _ folders: FolderContents, _ serving: Serving, _ known: KnownModules) {
        for name in modules {
            forget(name)
            if let served = serving.modules[name] {
                keep(Kept(module: served.module, path: served.path, isServing: true))
            } else if let module = known.module(named: name) {
                keep(Kept(module: module, path: module.file, isServing: false))
            }
            if isSettled(name, folders) { unsettled.remove(name) } else { unsettled.insert(name) }
        }
        changed.subtract(modules)
    }

    private func isSettled(_ name: String, _ folders: FolderContents) -> Bool {
        let files = files[name] ?? []
        guard files.allSatisfy({ folders.records[$0]?.isSettled == true }) else { return false }
        guard let kept = kept[name] else { return files.isEmpty }
        guard let record = folders.records[kept.path], record.verdict == .serves, let module = record.module
        else { return false }
        return Plan.isSame(module, kept.module)
    }

    private func forget(_ name: String) {
        guard let before = kept.removeValue(forKey: name) else { return }
        let outline = before.module.outline
        for target in outline.targets where targets[target] == name { targets[target] = nil }
        for service in outline.services {
            if services[service] == name { services[service] = nil }
            offers.remove(name, of: service.name)
        }
        for requirement in outline.requirements { requiring.remove(name, of: requirement.subject) }
        if before.isServing { servedFiles.remove(name, of: PathKey(before.path)) }
        isolated.remove(name)
    }

    private func keep(_ module: Kept) {
        let outline = module.module.outline
        kept[outline.name] = module
        for target in outline.targets { targets[target] = outline.name }
        for service in outline.services {
            services[service] = outline.name
            offers[service.name, default: []].insert(outline.name)
        }
        for requirement in outline.requirements { requiring[requirement.subject, default: []].insert(outline.name) }
        if module.isServing { servedFiles[PathKey(module.path), default: []].insert(outline.name) }
        if module.isServing, module.module.process != nil { isolated.insert(outline.name) }
    }

    /// Whether none of the modules has requirements.
    var areFree: Bool { requiring.isEmpty }

    /// Whether the process of a module that serves has ended, or is to be replaced.
    func haveEnded(in serving: Serving) -> Bool {
        isolated.contains { serving.modules[$0].map { $0.isRestarting || $0.module.hasEnded } == true }
    }

    /// Returns the names of the modules that must be planned together, because they have changed or are to start, with
    /// the modules that require them and the registered modules that they require.
    ///
    /// Returns `nil` if all modules must be planned: if these are more than half, or if one of them requires a service
    /// that is offered by several of them that do not serve, since which of those starts depends on the order of all
    /// modules.
    ///
    /// - Parameter wanted: The names of registered modules that are to start.
    func affected(by folders: FolderContents, starting wanted: Set<String>) -> Set<String>? {
        var all = changed.union(unsettled)
        var open = Array(all)
        while let name = open.popLast() {
            let found = dependents(of: name, folders).union(sharing(name, folders))
            for other in found where all.insert(other).inserted { open.append(other) }
        }
        let starting = wanted.filter { kept[$0]?.isServing == false }
        open = Array(all.union(starting))
        all.formUnion(starting)
        while let name = open.popLast() {
            for requirement in outlines(of: name, folders).flatMap(\.requirements) {
                for other in providers(of: requirement.subject) where kept[other]?.isServing == false {
                    if all.insert(other).inserted { open.append(other) }
                }
            }
        }
        return all.count > 16 && all.count * 2 > kept.count || isAmbiguous(all, folders) ? nil : all
    }

    /// Returns whether a service that one of these modules requires is offered by several of them that do not serve.
    private func isAmbiguous(_ names: Set<String>, _ folders: FolderContents) -> Bool {
        var required: Set<String> = []
        for requirement in names.flatMap({ outlines(of: $0, folders) }).flatMap(\.requirements) {
            if case .service(let name) = requirement.subject { required.insert(name) }
        }
        guard !required.isEmpty else { return false }
        var offered: Set<String> = []
        for name in names where kept[name]?.isServing != true {
            let services = Set(outlines(of: name, folders).flatMap(\.services).map(\.name))
            for service in services where !offered.insert(service).inserted && required.contains(service) {
                return true
            }
        }
        return false
    }

    /// Returns the outlines of the module that serves or is registered, and of those in its files, which may replace
    /// it.
    private func outlines(of name: String, _ folders: FolderContents) -> [ModuleOutline] {
        let present = kept[name].map { [$0.module.outline] } ?? []
        return present + (files[name] ?? []).compactMap { folders.records[$0]?.claimedModule?.outline }
    }

    private func dependents(of name: String, _ folders: FolderContents) -> Set<String> {
        var dependents = requiring[.module(name)] ?? []
        for outline in outlines(of: name, folders) {
            for service in outline.services { dependents.formUnion(requiring[.service(service.name)] ?? []) }
        }
        return dependents
    }

    /// Returns the module in the file that this module was loaded from, and the modules that were loaded from its
    /// files.
    private func sharing(_ name: String, _ folders: FolderContents) -> Set<String> {
        var others = Set([kept[name].flatMap { names[PathKey($0.path)] }].compactMap(\.self))
        for path in files[name] ?? [] { others.formUnion(servedFiles[path] ?? []) }
        return others
    }

    private func providers(of subject: Subject) -> Set<String> {
        switch subject {
        case .module(let name): kept[name] == nil ? [] : [name]
        case .service(let name): offers[name] ?? []
        }
    }

    /// Returns the records of the files that concern modules: their own, and those from which they serve.
    func records(of modules: Set<String>, in folders: FolderContents) -> [FileRecord] {
        let paths = modules.reduce(into: Set<PathKey>()) { paths, name in
            paths.formUnion(files[name] ?? [])
            if let kept = kept[name] { paths.insert(kept.path) }
        }
        return paths.compactMap { folders.records[$0] }
    }
}

extension SettledModules {
    /// The modules that a plan is not about.
    struct Others {
        let modules: SettledModules
        /// The names of the modules that the plan is about.
        let besides: Set<String>
        /// Whether registered modules are left out.
        var areServing = false

        private func kept(_ name: String?) -> Kept? {
            guard let name, !besides.contains(name), let kept = modules.kept[name], kept.isServing || !areServing
            else { return nil }
            return kept
        }

        func owner(ofTarget target: String) -> Claims.Owner? {
            kept(modules.targets[target]).map { Claims.Owner(name: $0.module.name, file: $0.path) }
        }

        func owner(of service: ModuleManifest.Service.Key) -> Claims.Owner? {
            kept(modules.services[service]).map { Claims.Owner(name: $0.module.name, file: $0.path) }
        }

        /// Returns the services of this name that these modules offer.
        func offers(of service: String) -> [(module: LoadedModule, key: ModuleManifest.Service.Key, file: String)] {
            (modules.offers[service] ?? []).sorted().compactMap(kept).flatMap { kept in
                kept.module.outline.services.filter { $0.name == service }.map { (kept.module, $0, kept.path) }
            }
        }

        func version(of module: String) -> SemanticVersion? { kept(module)?.module.outline.version }
    }
}

extension Dictionary where Value == Set<String> {
    fileprivate mutating func remove(_ name: String, of key: Key) {
        self[key]?.remove(name)
        if self[key]?.isEmpty == true { self[key] = nil }
    }
}

extension [String: Set<PathKey>] {
    fileprivate mutating func remove(_ path: PathKey, of name: String) {
        self[name]?.remove(path)
        if self[name]?.isEmpty == true { self[name] = nil }
    }
}
