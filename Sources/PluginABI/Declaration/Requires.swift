/// What a module cannot do without: another module, a service, or a newer binary interface.
///
///     Requires(module: "Accounts", "^1.2")
///     Requires(service: "Login", ">=1.0 <3.0")
///     Requires(service: "Printing").optional()
///
/// A module waits, visible in the status, until what it requires is there, and starts after it. When that goes, the module
/// stops before it. Ranges of versions are written as npm writes them: `1.2.3`, `>=1.0 <2.0`, `^1.2` (up to the next major
/// version), `~1.2` (up to the next minor one), `1.x`, `1.2 - 1.4`, and `||` between those of which one will do.
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
    ///   - module: Its name; not the module's own. Each is required once.
    ///   - versions: The range of versions that will do. A host refuses a manifest with a range that it cannot read.
    public init(module: String, _ versions: String = "*") { (subject, self.versions) = (.module(module), versions) }

    /// Requires a service, whichever module offers it.
    ///
    /// - Parameters:
    ///   - service: Its name. Each is required once.
    ///   - versions: The range of versions that will do.
    public init(service: String, _ versions: String = "*") { (subject, self.versions) = (.service(service), versions) }

    /// Requires a host whose binary interface has at least this minor version. A host with a smaller one refuses the
    /// module, and says so.
    public init(abiMinor: Int) { (subject, versions) = (.abiMinor(abiMinor), "*") }

    /// Starts the module also where this is missing; where it is there in time, it comes first. Means nothing for the
    /// binary interface.
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
