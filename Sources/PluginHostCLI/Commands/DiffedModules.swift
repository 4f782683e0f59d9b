internal import FoundationEssentials
internal import Glibc
internal import PluginABI
internal import PluginFile

/// One side of a comparison: the modules of a file, of a folder, or of a running host.
struct DiffedModules {
    /// Whether it is a file, of which only the one module is compared.
    let isFile: Bool
    let isHost: Bool
    /// Manifests in the order of the files.
    let manifests: [Value]

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
        case S_IFDIR: self.init(manifests: try Self.folder(path, arguments))
        default:
            let report = try Self.inspect(path, arguments)
            self.init(manifests: [report["manifest"] ?? nil], isFile: true)
        }
    }

    /// Asks a running host for the modules that it serves.
    init(of host: any HostService, _ arguments: ParsedArguments) async throws(PluginError) {
        var manifests: [Value] = []
        for module in try await host.request("list", [:]).list ?? [] where module["state"] == "active" {
            let parameters = try ["name": module["name"] ?? nil].withTimeout(of: arguments)
            do throws(PluginError) {
                manifests.append(try await host.request("manifest", parameters)["manifest"] ?? nil)
            } catch {
                // It may have gone since it was listed.
                guard error.code == .unknownModule else { throw error }
            }
        }
        self.init(manifests: manifests, isHost: true)
    }

    private init(manifests: [Value], isFile: Bool = false, isHost: Bool = false) {
        (self.manifests, self.isFile, self.isHost) = (manifests, isFile, isHost)
    }

    /// Returns the manifests of the modules in a folder. The libraries that these modules bring along are not modules.
    private static func folder(_ path: String, _ arguments: ParsedArguments) throws(PluginError) -> [Value] {
        let names: [String]
        do { names = try FileManager.default.contentsOfDirectory(atPath: path) } catch {
            throw PluginError(.unreadable, "The folder \(path.shortened) cannot be read. Check its permissions.")
        }
        var reports: [Value] = []
        var errors: [(file: String, error: PluginError)] = []
        for name in names.sorted() where name.hasSuffix(".so") && !name.hasPrefix(".") {
            let file = path.hasSuffix("/") ? path + name : "\(path)/\(name)"
            do throws(PluginError) { reports.append(try inspect(file, arguments)) } catch {
                errors.append((file, error))
            }
        }
        let libraries = Set(reports.flatMap { ($0["elf"] ?? nil).texts("staged") })
        if let (_, error) = errors.first(where: { !libraries.contains($0.file) }) { throw error }
        return reports.map { $0["manifest"] ?? nil }
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
