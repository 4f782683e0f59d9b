internal import Glibc
internal import PluginABI
internal import PluginFile
internal import PluginHost

/// One side of a comparison: the modules of a file, of a folder, or of a running host.
struct DiffedModules {
    /// Whether this side is a file, whose one module is compared.
    let isFile: Bool
    let isHost: Bool
    /// Manifests in the order of the files.
    let manifests: [Value]
    /// The state of each module that the host lists, but that neither serves nor is registered, by name.
    var unserved: [String: String] = [:]
    /// The notes about what the manifests lack, by the name of the module.
    var notes: [String: [String]] = [:]

    var names: [String] { manifests.map { $0.text("name") } }

    /// Returns the manifest of a module; of its highest version if there are several files.
    func manifest(of name: String) -> Value? {
        manifests.filter { $0["name"]?.string == name }
            .max { SemanticVersion($0.text("version")) ?? .lowest < SemanticVersion($1.text("version")) ?? .lowest }
    }

    /// Reads the modules at a path: a shared library, a folder, or the socket of a running host.
    init(at path: String, _ arguments: ParsedArguments) async throws(PluginError) {
        guard let status = fileStatus(path) else {
            throw PluginError(.fileNotFound, "There is no file \(path.shortened).")
        }
        switch status.st_mode & S_IFMT {
        case S_IFSOCK:
            let host = try AttachedHost(path: path)
            defer { host.end() }
            try await self.init(of: host, arguments)
        case S_IFDIR: self.init(reports: try Self.folder(path, arguments))
        default:
            let report = try Self.inspect(path, arguments)
            self.init(reports: [report], isFile: true)
        }
    }

    /// Asks a running host for the modules that it serves and those that are registered, as soon as it has started.
    init(of host: any HostService, _ arguments: ParsedArguments) async throws(PluginError) {
        /// Returns `nil` for a module that neither serves nor is registered, or has gone since it was listed.
        func report(_ name: String) async throws(PluginError) -> Value? {
            do throws(PluginError) {
                return try await host.request("manifest", ["name": .string(name)].withTimeout(of: arguments))
            } catch {
                guard error.code == .unknownModule else { throw error }
                return nil
            }
        }
        // This waits for the start, which the list does not.
        _ = try await report("?")
        var reports: [Value] = []
        var states: [String: String] = [:]
        for module in try await host.request("list", [:]).list ?? [] {
            guard let name = module["name"]?.string, !name.isEmpty else { continue }
            if module.isServedOrRegistered, let report = try await report(name) {
                reports.append(report)
            } else {
                states[name] = module.text("state")
            }
        }
        self.init(reports: reports, isHost: true)
        for name in names { states[name] = nil }
        unserved = states
    }

    private init(reports: [Value], isFile: Bool = false, isHost: Bool = false) {
        manifests = reports.map { $0["manifest"] ?? nil }
        (self.isFile, self.isHost) = (isFile, isHost)
        for report in reports where report["notes"] != nil {
            notes[(report["manifest"] ?? nil).text("name"), default: []] += report.texts("notes")
        }
    }

    /// Whether the manifest of a module lacks all types that its code derives.
    func isUntyped(_ name: String) -> Bool { notes[name]?.contains { $0.hasPrefix("The types are not") } == true }

    /// Returns the descriptions of the modules in a folder. The libraries that these modules bring along are not
    /// modules.
    private static func folder(_ path: String, _ arguments: ParsedArguments) throws(PluginError) -> [Value] {
        var reports: [Value] = []
        var errors: [(file: String, error: PluginError)] = []
        for file in try PluginFolder.libraries(in: path, includesSubfolders: arguments.has(.recursive)) {
            do throws(PluginError) { reports.append(try inspect(file, arguments)) } catch {
                errors.append((file, error))
            }
        }
        let libraries = Set(reports.flatMap { ($0["elf"] ?? nil).texts("staged") })
        if let (_, error) = errors.first(where: { !libraries.contains($0.file) }) { throw error }
        return reports
    }

    private static func inspect(_ file: String, _ arguments: ParsedArguments) throws(PluginError) -> Value {
        try Inspection(
            file: file, trustsEveryone: arguments.has(.trust), deadline: try arguments.timeout, endsSoon: true
        ).run()
    }
}

extension SemanticVersion {
    fileprivate static var lowest: SemanticVersion { SemanticVersion(0, 0, 0) }
}
