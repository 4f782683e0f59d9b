package import PluginABI

/// A file in a plugins folder that declares which targets implement services, `*.services.json` or `*.services.plist`:
///
///     {"HomeService": {"target": "A", "version": "1.2.0"}}
///
/// The counterpart in BeeHive is the property list `BHService.plist`, a list of protocols and classes. It is accepted
/// under its own name or that of a service file, and its classes name targets:
///
///     [{"service": "HomeService", "impl": "A"}]
package enum ServiceFile {
    static let serviceLimit = 10_000

    /// Returns whether this is the name or the path of a service file.
    package static func isNamed(_ name: String) -> Bool {
        DeclarationFile.isNamed(name, "services") || name == ofBeeHive || name.hasSuffix("/\(ofBeeHive)")
    }

    private static let ofBeeHive = "BHService.plist"

    /// Reads the services of a file.
    ///
    /// - Parameter path: The path of the file, for messages.
    /// - Throws: `invalidServiceFile`, with the file and what is wrong.
    package static func parse(_ bytes: [UInt8], path: String) throws(PluginError) -> [ModuleManifest.Service] {
        let file = DeclarationFile(path: path, code: .invalidServiceFile)
        let declarations = try declarations(try file.content(bytes), file)
        try file.checkCount(declarations.count, "services", limit: serviceLimit)
        var services: [ModuleManifest.Service] = []
        var keys: Set<ModuleManifest.Service.Key> = []
        for declared in declarations {
            let service: ModuleManifest.Service
            do throws(PluginError) {
                service = try ModuleManifest.Service(declared, ofFile: path)
            } catch {
                throw PluginError(.invalidServiceFile, error.message)
            }
            guard keys.insert(service.key).inserted else {
                throw file.error(
                    ": the service \(service.name) \(service.version) is declared twice with the priority "
                        + "\(service.priority).")
            }
            services.append(service)
        }
        return services
    }

    /// A service as the file declares it.
    enum Declaration {
        case named(String, Value)
        case ofBeeHive(Value, number: Int)
    }

    private static func declarations(_ content: Value, _ file: DeclarationFile) throws(PluginError) -> [Declaration] {
        if let list = content.list {
            return list.enumerated().map { .ofBeeHive($1, number: $0 + 1) }
        }
        let entries = try file.entries(
            content,
            "services to targets, such as {\"HomeService\": {\"target\": \"A\", \"version\": \"1.0.0\"}}, or a list of "
                + "objects, such as [{\"service\": \"HomeService\", \"impl\": \"A\"}]")
        return entries.flatMap { name, value in (value.list ?? [value]).map { .named(name, $0) } }
    }
}
