internal import FoundationEssentials
internal import PluginABI
internal import PluginFile

/// `pluginhost diff OLD NEW`
enum Diff: Command {
    static let specification = CommandSpecification(
        name: "diff",
        overview: "Show what has changed from one version of a module to another, or between two folders.",
        discussion:
            "This compares manifests: what was added, changed and removed, what of it breaks callers, and whether the "
            + "version of each module says so by the rules of Semantic Versioning. Modules of two folders are compared "
            + "by name. The exit code is 0 if the versions say what has changed, and 65 if one does not, or if a module "
            + "was removed.",
        arguments: [
            ArgumentSpecification(name: "old", kind: .file, help: "A shared library, or a folder of them."),
            ArgumentSpecification(name: "new", kind: .file, help: "The one to compare it with."),
        ],
        options: [.trust, .timeout, .json])

    static func run(_ invocation: Invocation) async throws(PluginError) {
        let arguments = invocation.arguments
        let old = try modules(of: arguments.positionals[0], arguments)
        let new = try modules(of: arguments.positionals[1], arguments)
        let isOfFiles = old.isFile && new.isFile
        guard old.isFile == new.isFile else {
            throw .usage("One is a file, the other a folder. Compare two files, or two folders.")
        }
        var records: [Value] = []
        var wrong: [String] = []
        let names = isOfFiles ? [new.names[0]] : Array(Set(old.names + new.names)).sorted()
        for name in names {
            let before = isOfFiles ? old.manifests[0] : old.manifest(of: name)
            let record = try compare(name, before, isOfFiles ? new.manifests[0] : new.manifest(of: name))
            records.append(record)
            if record["passed"] == false { wrong.append(name) }
            if !invocation.isJSON { show(record, invocation.console) }
        }
        if invocation.isJSON { invocation.console.print(Value.list(records).json) }
        guard !wrong.isEmpty else { return }
        throw PluginError(
            .checkFailed,
            "\(counted(wrong.count, "module")) of \(names.count) would surprise callers: \(wrong.joined(separator: ", "))."
        )
    }

    /// The manifests of a file or a folder, in the order of their names.
    private struct Modules {
        let isFile: Bool
        let manifests: [Value]
        var names: [String] { manifests.map { $0.text("name") } }
        /// The manifest of a module; of its highest version, if there are several.
        func manifest(of name: String) -> Value? {
            manifests.filter { $0["name"]?.string == name }
                .max { SemanticVersion($0.text("version")) ?? .lowest < SemanticVersion($1.text("version")) ?? .lowest }
        }
    }

    private static func modules(of path: String, _ arguments: ParsedArguments) throws(PluginError) -> Modules {
        var isFolder = false
        guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
            throw PluginError(.fileNotFound, "There is no file \(path.shortened).")
        }
        let names = isFolder ? (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? [] : []
        let files =
            isFolder ? names.filter { $0.hasSuffix(".so") && !$0.hasPrefix(".") }.map { "\(path)/\($0)" } : [path]
        var manifests: [Value] = []
        for file in files.sorted() {
            let inspection = Inspection(
                file: file, trustsEveryone: arguments.has(.trust), deadline: try arguments.timeout, endsSoon: true)
            manifests.append(try inspection.run()["manifest"] ?? nil)
        }
        return Modules(isFile: !isFolder, manifests: manifests)
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

extension SemanticVersion {
    fileprivate static var lowest: SemanticVersion { SemanticVersion(0, 0, 0) }
}
