/// A requirement of a module: another module, a service, or a minimum version of the binary interface.
///
///     Requires(module: "Accounts", "^1.2")
///     Requires(service: "Login", ">=1.0 <3.0")
///     Requires(service: "Printing").optional()
///
/// A module waits until its requirements are met, which its status shows, and starts after the modules that meet them.
/// When one of those is removed, the module stops first. Version ranges have the syntax of npm: `1.2.3`, `>=1.0 <2.0`,
/// `^1.2` (up to the next major version), `~1.2` (up to the next minor version), `1.x`, `1.2 - 1.4`, and `||` between
/// alternatives.
public struct Requires: ManifestPart {
    private enum Subject {
        case module(String)
        case service(String)
        case abiMinor(Int)
    }

    private let subject: Subject
    private let versions: String
    private var isOptional = false

    /// Requires another module.
    ///
    /// - Parameters:
    ///   - module: The name of the other module. Each module can be required only once.
    ///   - versions: The range of acceptable versions. A host refuses a manifest with an invalid range.
    public init(module: String, _ versions: String = "*") { (subject, self.versions) = (.module(module), versions) }

    /// Requires a service, from any module.
    ///
    /// - Parameters:
    ///   - service: The name of the service. Each service can be required only once.
    ///   - versions: The range of acceptable versions.
    public init(service: String, _ versions: String = "*") { (subject, self.versions) = (.service(service), versions) }

    /// Requires a host whose binary interface has at least this minor version. A host with a lower one refuses the
    /// module, and its error states the reason.
    public init(abiMinor: Int) { (subject, versions) = (.abiMinor(abiMinor), "*") }

    /// Makes the requirement optional: the module starts even if the required module or service is missing. If that is
    /// present in time, the module starts after it. Has no effect on a requirement of the binary interface.
    public func optional() -> Self { modified(self) { $0.isOptional = true } }

    public func add(to module: ModuleDescription) {
        var entry = ManifestObject()
        switch subject {
        case .module(let name): entry.add("module", .string(name))
        case .service(let name): entry.add("service", .string(name))
        case .abiMinor(let minor):
            module.abiMinor = max(module.abiMinor, minor)
            return
        }
        if versions != "*" { entry.add("version", .string(versions)) }
        if isOptional { entry.add("optional", true) }
        module.requirements.append(entry.json)
    }
}
