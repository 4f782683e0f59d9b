import PluginABI

extension ModuleManifest {
    /// A module or service that a module requires before it starts. The module also runs if an optional requirement is
    /// not met.
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
    /// The subject as text for people: `the service Login`.
    package var description: String {
        switch self {
        case .module(let name): "the module \(name)"
        case .service(let name): "the service \(name)"
        }
    }
}

extension ModuleManifest.Requirement: CustomStringConvertible {
    /// The requirement as text for people: `the service Login ^1.2`.
    package var description: String { "\(subject) \(versions)" }
}

extension ManifestNode {
    /// Reads the requirements.
    ///
    /// - Parameters:
    ///   - module: The name of the module.
    ///   - services: The services that the module itself offers.
    func requirements(
        of module: String, offering services: [ModuleManifest.Service]
    ) throws(PluginError) -> [ModuleManifest.Requirement] {
        let name = { (value: Value) in (value["module"] ?? value["service"])?.string }
        return try elements("requires", "requirement", name: name) { node, before throws(PluginError) in
            let requirement = try node.requirement()
            let subject = requirement.subject
            try node.check(
                subject != .module(module), else: "the module requires itself. Remove the requirement")
            let own = services.first {
                subject == .service($0.name) && requirement.versions.contains($0.version)
            }
            if let own {
                throw node.error(
                    "the module requires the service \(own.name) \(requirement.versions), but offers it itself in "
                        + "version \(own.version). Remove the requirement")
            }
            try check(
                !before.contains { $0.subject == subject },
                else: "\(subject) is required twice; combine both ranges into one, separated by a space")
            return requirement
        }
    }

    private func requirement() throws(PluginError) -> ModuleManifest.Requirement {
        try checkKeys(["module", "service", "version", "optional"])
        let isModule = self["module"] != nil
        try check(
            isModule != (self["service"] != nil), else: "it must have either \"module\" or \"service\"")
        return ModuleManifest.Requirement(
            subject: isModule ? .module(try name("module")) : .service(try name("service")),
            versions: try versionRange("version"), isOptional: try flag("optional"))
    }

    private func versionRange(_ key: String) throws(PluginError) -> VersionRange {
        guard let text = try optional(key, \.string, "a string, such as \"^1.2\"") else { return .any }
        do throws(PluginError) {
            return try VersionRange(text)
        } catch {
            throw self.error("\"\(key)\" is not a version range", " " + error.message)
        }
    }

    /// Reads the lowest minor version of the binary interface that the module needs. Must be called before anything is
    /// read that a newer interface may have added, so that an incompatible module fails with this error.
    ///
    /// - Throws: `incompatible` if the host's version is lower.
    func abiMinor(of module: String) throws(PluginError) -> Int {
        let minor = try optional("abiMinor", \.int, "a whole number") ?? 0
        try check(minor >= 0, else: "\"abiMinor\" is \(minor), but must not be negative")
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
