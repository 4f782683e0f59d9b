package import PluginABI

/// A file in a plugins folder that declares which targets implement services, `*.services.json` or `*.services.plist`:
///
///     {"HomeService": {"target": "A", "version": "1.2.0"}}
///
/// The counterpart in BeeHive is the property list that maps protocols to classes.
package enum ServiceFile {
    static let serviceLimit = 10_000

    package static func isNamed(_ name: String) -> Bool { DeclarationFile.isNamed(name, "services") }

    /// Reads the services of a file.
    ///
    /// - Parameter path: The path of the file, for messages.
    /// - Throws: `invalidServiceFile`, with the file and what is wrong.
    package static func parse(_ bytes: [UInt8], path: String) throws(PluginError) -> [ModuleManifest.Service] {
        let file = DeclarationFile(path: path, code: .invalidServiceFile)
        let entries = try file.entries(
            bytes, "services to targets, such as {\"HomeService\": {\"target\": \"A\", \"version\": \"1.0.0\"}}")
        var services: [ModuleManifest.Service] = []
        for (name, value) in entries {
            for declaration in value.list ?? [value] {
                let service: ModuleManifest.Service
                do throws(PluginError) {
                    service = try ModuleManifest.Service(named: name, declaration, ofFile: path)
                } catch {
                    throw PluginError(.invalidServiceFile, error.message)
                }
                if services.contains(where: service.collides) {
                    throw file.error(
                        ": the service \(name) \(service.version) is declared twice with the priority "
                            + "\(service.priority).")
                }
                services.append(service)
            }
        }
        try file.checkCount(services.count, "services", limit: serviceLimit)
        return services
    }
}
