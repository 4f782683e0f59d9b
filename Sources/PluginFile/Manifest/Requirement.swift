import CPluginABI
import PluginABI

extension ModuleManifest {
    /// What must be there before the module is; without an optional one it runs as well.
    package struct Requirement: Sendable, Hashable {
        package var subject: Subject
        package var versions: VersionRange
        package var isOptional = false

        package enum Subject: Sendable, Hashable {
            case module(String)
            case service(String)
        }
    }
}

extension ModuleManifest.Requirement.Subject: CustomStringConvertible {
    /// For people: `the service Login`.
    package var description: String {
        switch self {
        case .module(let name): "the module \(name)"
        case .service(let name): "the service \(name)"
        }
    }
}

extension ModuleManifest.Requirement: CustomStringConvertible {
    /// For people: `the service Login ^1.2`.
    package var description: String { "\(subject) \(versions)" }
}

extension ManifestNode {
    /// - Parameters:
    ///   - module: The module that requires.
    ///   - services: What it offers itself.
    func requirements(
        of module: String, offering services: [ModuleManifest.Service]
    ) throws(PluginError) -> [ModuleManifest.Requirement] {
        let name = { (value: Value) in (value["module"] ?? value["service"])?.string }
        return try elements("requires", "requirement", name: name) { node, before throws(PluginError) in
            let requirement = try node.requirement()
            let subject = requirement.subject
            try node.check(
                subject != .module(module), else: "the module requires itself. Leave the requirement out")
            let own = services.first {
                subject == .service($0.name) && requirement.versions.contains($0.version)
            }
            if let own {
                throw node.error(
                    "the module requires the service \(own.name) \(requirement.versions), and offers it itself, in "
                        + "version \(own.version). Leave the requirement out")
            }
            try check(
                !before.contains { $0.subject == subject },
                else: "\(subject) is required twice; put both ranges into one, with a space between them")
            return requirement
        }
    }

    private func requirement() throws(PluginError) -> ModuleManifest.Requirement {
        try checkKeys(["module", "service", "version", "optional"])
        let isModule = self["module"] != nil
        try check(
            isModule != (self["service"] != nil), else: "it must have one of the keys \"module\" and \"service\"")
        return ModuleManifest.Requirement(
            subject: isModule ? .module(try name("module")) : .service(try name("service")),
            versions: try versionRange("version"), isOptional: try flag("optional"))
    }

    private func versionRange(_ key: String) throws(PluginError) -> VersionRange {
        guard let text = try optional(key, \.string, "a string, such as \"^1.2\"") else { return .any }
        do throws(PluginError) {
            return try VersionRange(text)
        } catch {
            throw self.error("\"\(key)\" is no range of versions", " " + error.message)
        }
    }

    /// The smallest minor version of the binary interface that the module can do with.
    ///
    /// - Throws: `incompatible` if the host's is smaller. Asked before everything that a newer interface may have
    ///   brought, so that this is what people read.
    func abiMinor(of module: String) throws(PluginError) -> Int {
        let minor = try optional("abiMinor", \.int, "a whole number") ?? 0
        try check(minor >= 0, else: "\"abiMinor\" is \(minor), and must not be negative")
        guard minor <= PLUGIN_ABI_MINOR else {
            throw PluginError(
                .incompatible,
                "\(module) needs version \(PLUGIN_ABI_MAJOR).\(minor) of the binary interface, or a later one; this host "
                    + "has \(PLUGIN_ABI_MAJOR).\(PLUGIN_ABI_MINOR). Use a newer host, or an older version of the module."
            )
        }
        return minor
    }
}
