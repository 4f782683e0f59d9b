import Foundation
import PluginABI
import PluginFile

/// Which file of each module is to serve, and why others do not.
///
/// A function of what is in the folders and of what serves already, never of the order in which files arrived: the
/// highest version that can start, of equal ones the file name that sorts first. What serves goes on when its file was
/// renamed or copied; and when its file holds something else that cannot be served. What the program registers replaces
/// nothing, and nothing replaces it; it waits for nothing.
struct Plan {
    /// What may serve under the name of a module.
    struct Candidate {
        let module: LoadedModule
        /// The file that holds it; where none does any more, the one that it came from.
        let path: String
        /// What serves already with this content.
        var served: Served?
        /// Whether a file holds it.
        let isInFolder: Bool

        var manifest: ModuleManifest { module.manifest }
    }

    /// In the order of their start: what the program registers, then the others.
    private(set) var serving: [Candidate] = []
    /// By path, for every file that holds a module.
    private(set) var verdicts: [PathKey: FileRecord.Verdict] = [:]
    /// What serves now and will not any more, in the order of its start.
    private(set) var leaving: [Served] = []

    /// Why what the program registers is not to serve.
    private(set) var refusal: PluginError?

    /// - Parameters:
    ///   - records: What the files hold.
    ///   - present: What serves now.
    ///   - change: What the program registers or takes away.
    ///   - routes: What was added to the routes of modules, and taken away from them.
    init(_ records: [FileRecord], _ present: Serving, _ change: ProgramChange?, _ routes: Routes) {
        let served = present.modules
        var files: [String: [FileRecord]] = [:]
        let taken = Self.takenFiles(records, served)
        for record in records {
            guard let name = record.claimedModule?.manifest.name else { continue }
            if let owner = taken[record.path] {
                verdicts[record.path] = Self.refusal(of: record, owner)
            } else {
                files[name, default: []].append(record)
            }
        }
        let paths = Set(paths: records.map(\.path))
        var names = Set(files.keys)
        names.formUnion(served.keys)
        var options = Options(
            program: Self.registered(present.program, change), served: present.all.map(\.generation), routes: routes)
        for name in names.sorted() {
            let ranked = Self.rank(files[name] ?? [], served[name], paths)
            if !ranked.isEmpty { options.add(ranked) }
        }
        options.choose()
        (serving, refusal) = (options.serving, options.refusal)
        judge(options)
        let staying = Set(serving.compactMap { $0.served?.generation.number })
        leaving = present.all.filter { !staying.contains($0.generation.number) }
            .sorted { $0.generation.number < $1.generation.number }
    }

    /// What the program has registered after a change.
    private static func registered(_ present: [Served], _ change: ProgramChange?) -> [Candidate] {
        var candidates = present.map { Candidate(module: $0.module, path: $0.path, served: $0, isInFolder: false) }
        switch change {
        case .registers(let module): candidates.append(Candidate(module: module, path: module.file, isInFolder: false))
        case .unregisters(let served): candidates.removeAll { $0.module === served.module }
        case nil: break
        }
        return candidates
    }

    /// The files of modules that serve which hold another module now, with what serves, by path. That is a mistake more
    /// often than a wish, unless the module that serves has moved to another file.
    private static func takenFiles(_ records: [FileRecord], _ served: [String: Served]) -> [PathKey: Served] {
        let owners = Dictionary(served.values.map { (PathKey($0.path), $0) }) { first, _ in first }
        let taken = records.filter { record in
            guard let module = record.module, let owner = owners[record.path] else { return false }
            return module.manifest.name != owner.name
        }
        guard !taken.isEmpty else { return [:] }
        let present = Set(records.compactMap { $0.claimedModule?.manifest.name })
        return taken.reduce(into: [:]) { result, record in
            if let owner = owners[record.path], !present.contains(owner.name) { result[record.path] = owner }
        }
    }

    private static func refusal(of record: FileRecord, _ owner: Served) -> FileRecord.Verdict {
        guard let manifest = record.claimedModule?.manifest else { return .undecided }
        return .refused(
            PluginError(
                .conflict,
                "\(record.path) held \(owner.name) \(owner.module.manifest.version) and now holds \(manifest.name) "
                    + "\(manifest.version). \(owner.name) goes on. Delete the file first if it is to go, and give "
                    + "\(manifest.name) a file of its own."))
    }

    /// The candidates of one module, the one that should serve first.
    private static func rank(_ files: [FileRecord], _ served: Served?, _ paths: Set<PathKey>) -> [Candidate] {
        var ranked = files.compactMap { file in
            file.module.map { module in
                Candidate(
                    module: module, path: file.path,
                    served: served.flatMap { isSame($0.module, module) ? $0 : nil }, isInFolder: true)
            }
        }
        ranked.sort { left, right in
            if left.manifest.version != right.manifest.version { return left.manifest.version > right.manifest.version }
            if left.module.isLinked != right.module.isLinked { return left.module.isLinked }
            return left.path.sortsAsFile(before: right.path)
        }
        guard let served else { return ranked }
        // The same again under a name that sorts first is no reason to start anew.
        if let place = ranked.firstIndex(where: { $0.served != nil }) {
            let own = ranked.firstIndex { $0.served != nil && $0.path.hasBytes(of: served.path) } ?? place
            ranked.insert(ranked.remove(at: own), at: place)
            for other in ranked.indices where other != place { ranked[other].served = nil }
        } else if paths.contains(served.path) || !files.isEmpty {
            // Its successor may fail. What was there goes on then.
            ranked.append(Candidate(module: served.module, path: served.path, served: served, isInFolder: false))
        }
        return ranked
    }

    static func isSame(_ a: LoadedModule, _ b: LoadedModule) -> Bool {
        if a === b { return true }
        guard a.manifest.version == b.manifest.version else { return false }
        // A file of the version that is linked in is taken for the same: the program has no bytes to compare.
        return a.isLinked || b.isLinked || a.hasContent(of: b.staged) || b.hasContent(of: a.staged)
    }

    private mutating func judge(_ options: Options) {
        for group in options.groups {
            let chosen = group.isAdmitted ? group.chosen : nil
            for candidate in group.ranked where candidate.isInFolder {
                verdicts[candidate.path] =
                    if candidate.module === chosen?.module {
                        .serves
                    } else if let error = group.refusals[candidate.path] {
                        error.code == .conflict ? .refused(error) : .waits(error)
                    } else if let chosen {
                        Self.verdict(on: candidate, behind: chosen)
                    } else {
                        .undecided
                    }
            }
        }
    }

    private static func verdict(on candidate: Candidate, behind chosen: Candidate) -> FileRecord.Verdict {
        guard chosen.isInFolder, candidate.manifest.version == chosen.manifest.version,
            !isSame(candidate.module, chosen.module)
        else { return .superseded(by: chosen.path) }
        return .refused(
            PluginError(
                .conflict,
                "\(candidate.path) and \(chosen.path) are both \(chosen.manifest.name) \(chosen.manifest.version), with "
                    + "different content. \(chosen.fileName) serves, because its name sorts first; give one of them "
                    + "another version, or delete it."))
    }
}

extension Plan.Candidate {
    var fileName: String { (path as NSString).lastPathComponent }
}
