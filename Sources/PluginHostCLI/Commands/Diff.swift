internal import PluginABI
internal import PluginFile

/// `pluginhost diff OLD NEW`
enum Diff: Command {
    static let specification = CommandSpecification(
        name: "diff",
        overview: "Show what has changed from one version of modules to another.",
        discussion:
            "This compares manifests: what was added, changed and removed, what of it breaks callers, and whether the "
            + "version of each module says so by the rules of Semantic Versioning. Modules of folders and of running "
            + "hosts are compared by name. With one argument, that is the new side, and the old side is what the "
            + "running host serves. The exit code is 0 if the versions say what has changed, 65 if one does not, or if "
            + "a module was removed, and 69 if the host knows a module but does not serve it, for instance because it "
            + "has failed.",
        arguments: [
            ArgumentSpecification(
                name: "old", kind: .file,
                help: "A shared library, a folder of them, or the socket of a running host. The new side, if it is the "
                    + "only argument."),
            ArgumentSpecification(name: "new", isRequired: false, kind: .file, help: "What to compare with it."),
        ],
        options: [
            OptionSpecification(
                name: OptionSpecification.recursive.name,
                help: "Also search the subfolders of folders, as 'run --recursive' does."), .trust,
            OptionSpecification(
                name: "--timeout", value: "seconds",
                help: "How long the code of each file may take to describe it. (default: 10)"), .attach, .json,
        ])

    static func run(_ invocation: Invocation) async throws(PluginError) {
        let (old, new) = try await sides(invocation)
        var records: [Value] = []
        var wrong: [String] = []
        for name in try names(old, new) {
            try requireServed(name, old, new)
            try requireSameTypes(name, old, new, invocation.console)
            let before = old.isFile && new.isFile ? old.manifests[0] : old.manifest(of: name)
            let record = try compare(name, before, new.manifest(of: name))
            records.append(record)
            if record["passed"] == false { wrong.append(name) }
            if !invocation.isJSON { show(record, invocation.console) }
        }
        if invocation.isJSON { invocation.console.print(Value.list(records).json) }
        guard !wrong.isEmpty else { return }
        throw PluginError(
            .checkFailed,
            "\(counted(wrong.count, "module")) of \(records.count) would surprise callers: "
                + "\(wrong.joined(separator: ", ")).")
    }

    private static func sides(
        _ invocation: Invocation
    ) async throws(PluginError) -> (old: DiffedModules, new: DiffedModules) {
        let arguments = invocation.arguments
        let paths = arguments.positionals
        if paths.count == 2 {
            guard !invocation.has(.attach) else {
                throw .usage(
                    "With '\(OptionSpecification.attach.name)', name only the new modules: the old ones are those that "
                        + "the host serves.")
            }
            return (try await DiffedModules(at: paths[0], arguments), try await DiffedModules(at: paths[1], arguments))
        }
        guard let host = try invocation.without(.trust).without(.recursive).runningHost() else {
            throw .usage(
                "There is no running host to compare \(paths[0].shortened) with. Name two files or folders, or the socket of "
                    + "a host with '\(OptionSpecification.attach.name)'.")
        }
        defer { host.end() }
        return (try await DiffedModules(of: host, arguments), try await DiffedModules(at: paths[0], arguments))
    }

    /// Returns the names of the modules to compare.
    private static func names(_ old: DiffedModules, _ new: DiffedModules) throws(PluginError) -> [String] {
        if old.isFile, new.isFile || new.isHost { return new.isFile ? new.names : old.names }
        if new.isFile, old.isHost { return new.names }
        guard old.isFile == new.isFile else {
            throw .usage("One is a file, the other a folder. Compare two files, or two folders.")
        }
        return Set(old.names + new.names + old.unserved.keys + new.unserved.keys).sorted()
    }

    /// Checks that a host serves the module, if it knows it: otherwise it would seem to be added or removed.
    private static func requireServed(
        _ name: String, _ old: DiffedModules, _ new: DiffedModules
    ) throws(PluginError) {
        guard let state = old.unserved[name] ?? new.unserved[name] else { return }
        throw PluginError(
            .moduleUnavailable,
            "The host knows the module “\(name.shortened)”, but does not serve it: its state is “\(state)”. 'pluginhost "
                + "list' says why. There is nothing to compare until it serves.")
    }

    /// Prints what the manifests of a module lack, and checks that not only one of them lacks types.
    private static func requireSameTypes(
        _ name: String, _ old: DiffedModules, _ new: DiffedModules, _ console: Console
    ) throws(PluginError) {
        for (side, modules) in [("old", old), ("new", new)] {
            for note in modules.notes[name] ?? [] { console.diagnose("\(name) (\(side)): \(note)".printable) }
        }
        guard old.names.contains(name), new.names.contains(name), old.isUntyped(name) != new.isUntyped(name) else {
            return
        }
        throw PluginError(
            .inspectionCrashed,
            "The types of the \(old.isUntyped(name) ? "old" : "new") version of “\(name.shortened)” are not known, so the "
                + "two cannot be compared. If its code only takes long, pass a longer '--timeout'.")
    }

    private static func compare(_ name: String, _ old: Value?, _ new: Value?) throws(PluginError) -> Value {
        func record(_ old: SemanticVersion?, _ new: SemanticVersion?, _ more: [String: Value]) -> Value {
            let versions: [String: Value] = [
                "module": .string(name), "old": .text(old?.description), "new": .text(new?.description),
            ]
            return .map(versions.merging(more) { $1 })
        }
        guard let old, let new else {
            let version = SemanticVersion((old ?? new ?? nil).text("version"))
            return record(
                old == nil ? nil : version, old == nil ? version : nil,
                ["passed": .bool(old == nil), "changes": [], "problems": [], "required": nil])
        }
        let comparison = try ManifestComparison(from: old.parsedManifest(), to: new.parsedManifest())
        return record(
            comparison.old, comparison.new,
            [
                "passed": .bool(comparison.problems.isEmpty), "required": .string("\(comparison.requiredVersion)"),
                "problems": .list(comparison.problems.map(Value.string)),
                "changes": .list(
                    comparison.changes.map {
                        [
                            "change": .string($0.kind.rawValue), "subject": .string($0.subject),
                            "detail": .string($0.detail), "breaking": .bool($0.weight == .breaking),
                            "text": .string($0.description),
                        ]
                    }),
            ])
    }

    private static func show(_ record: Value, _ console: Console) {
        let (old, new) = (record["old"]?.string, record["new"]?.string)
        let versions =
            switch (old, new) {
            case (let old?, let new?): old == new ? "\(new)" : "\(old) → \(new)"
            case (let old?, nil): "\(old) was removed"
            default: "\(new ?? "") was added"
            }
        let changes = record.list("changes")
        let isSame = old != nil && new != nil && changes.isEmpty
        console.print("\(record.text("module")) \(versions)\(isSame ? ": the same interface" : "")".printable)
        for change in changes { console.print("  " + change.text("text").printable) }
        for problem in record.list("problems") { console.print("  " + (problem.string ?? "").printable) }
    }
}
