import PluginABI

/// The part of a manifest that a host needs to plan what serves and to find a module: what it claims, offers and
/// requires, without its actions.
package final class ModuleOutline: Sendable {
    package let name: String
    package let version: SemanticVersion
    package let level: ModuleManifest.Level
    /// The priority among modules of the same level. Modules with a higher number come first.
    package let priority: Int
    package let start: ModuleManifest.Start
    package let isolation: ModuleManifest.IsolationDemand
    package let isExclusive: Bool
    /// Whether the module has hooks that run when the host starts.
    package let hasStartHooks: Bool
    package let hasPermissions: Bool
    /// The names of the targets.
    package let targets: [String]
    /// The names of the interceptors.
    package let interceptors: [String]
    /// The names of the events that the module subscribes to.
    package let events: [String]
    package let services: [ModuleManifest.Service.Key]
    package let requirements: [ModuleManifest.Requirement]
    package let routes: [ModuleManifest.Route]

    package init(_ manifest: ModuleManifest) {
        (name, version, level, priority) = (manifest.name, manifest.version, manifest.level, manifest.priority)
        (start, isolation, isExclusive) = (manifest.start, manifest.isolation, manifest.isExclusive)
        hasStartHooks = manifest.hooks.contains { [.`init`, .didStart].contains($0) }
        hasPermissions = !manifest.permissions.isEmpty
        targets = manifest.targets.map(\.name)
        interceptors = manifest.interceptors.map(\.name)
        events = manifest.events.map(\.name)
        services = manifest.services.map(\.key)
        (requirements, routes) = (manifest.requirements, manifest.routes)
    }

    // MARK: The compact form

    /// The outline as bytes, which are read without reading the manifest; `nil` if a route has defaults or names for
    /// its groups, which the bytes cannot express.
    package var bytes: [UInt8]? {
        var writer = OutlineWriter()
        writer.add(choice: level)
        writer.add(choice: start)
        writer.add(choice: isolation)
        for flag in [isExclusive, hasStartHooks, hasPermissions] { writer.bytes.append(flag ? 1 : 0) }
        writer.add(UInt64(bitPattern: Int64(priority)))
        writer.add(name)
        writer.add(version)
        for names in [targets, interceptors, events] { writer.add(names) { $0.add($1) } }
        writer.add(services) { writer, service in
            writer.add(service.name)
            writer.add(service.version)
            writer.add(UInt64(bitPattern: Int64(service.priority)))
        }
        writer.add(requirements) { writer, requirement in
            switch requirement.subject {
            case .module(let name): writer.add(["m", name]) { $0.add($1) }
            case .service(let name): writer.add(["s", name]) { $0.add($1) }
            }
            writer.add(requirement.versions.description)
            writer.bytes.append(requirement.isOptional ? 1 : 0)
        }
        guard routes.allSatisfy({ $0.defaults.isEmpty && $0.groups.isEmpty }) else { return nil }
        writer.add(routes) { writer, route in
            for text in [route.pattern, route.target, route.action, route.summary] { writer.add(text) }
            for text in [route.method?.rawValue, route.name] { writer.add(text.map { [$0] } ?? []) { $0.add($1) } }
            writer.add(choice: route.transition)
        }
        return writer.bytes
    }

    /// Reads what ``bytes`` has returned; `nil` if the bytes do not have that form.
    package init?(_ bytes: UnsafeRawBufferPointer) {
        var reader = OutlineReader(bytes)
        do {
            level = try reader.choice()
            start = try reader.choice()
            isolation = try reader.choice()
            (isExclusive, hasStartHooks, hasPermissions) = try (reader.flag(), reader.flag(), reader.flag())
            priority = Int(Int64(bitPattern: try reader.number()))
            name = try reader.text()
            version = try reader.version()
            targets = try reader.list { try $0.text() }
            interceptors = try reader.list { try $0.text() }
            events = try reader.list { try $0.text() }
            services = try reader.list { reader in
                ModuleManifest.Service.Key(
                    name: try reader.text(), version: try reader.version(),
                    priority: Int(Int64(bitPattern: try reader.number())))
            }
            requirements = try reader.list { reader in
                let subject = try reader.list { try $0.text() }
                guard subject.count == 2 else { throw OutlineReader.Failure() }
                return ModuleManifest.Requirement(
                    subject: subject[0] == "m" ? .module(subject[1]) : .service(subject[1]),
                    versions: try VersionRange(try reader.text()), isOptional: try reader.flag())
            }
            routes = try reader.list { reader in
                var route = ModuleManifest.Route(
                    pattern: try reader.text(), target: try reader.text(), action: try reader.text())
                route.summary = try reader.text()
                route.method = try reader.list { try $0.text() }.first.map { name in
                    guard let method = RouteMethod(rawValue: name) else { throw OutlineReader.Failure() }
                    return method
                }
                route.name = try reader.list { try $0.text() }.first
                route.transition = try reader.choice()
                return route
            }
            guard reader.isAtEnd else { return nil }
        } catch { return nil }
    }

    package func provides(_ requirement: ModuleManifest.Requirement) -> Bool {
        switch requirement.subject {
        case .module(let name): self.name == name && requirement.versions.contains(version)
        case .service(let name):
            services.contains { $0.name == name && requirement.versions.contains($0.version) }
        }
    }
}

extension ModuleManifest {
    /// Creates a manifest with the name, the version and the targets of an outline, without actions.
    package init(_ outline: ModuleOutline) {
        (name, version) = (outline.name, outline.version)
        targets = outline.targets.map { Target(name: $0) }
    }
}

extension ModuleManifest.Target {
    /// Creates a target without actions.
    package init(named name: String) { self.init(name: name) }
}

/// Writes the compact form of an outline: numbers are little-endian, texts and lists follow their counts.
private struct OutlineWriter {
    var bytes: [UInt8] = []

    mutating func add(_ number: UInt64) { withUnsafeBytes(of: number.littleEndian) { bytes += $0 } }

    mutating func add(count: Int) { withUnsafeBytes(of: UInt32(count).littleEndian) { bytes += $0 } }

    mutating func add(_ text: String) {
        add(count: text.utf8.count)
        bytes += text.utf8
    }

    mutating func add<Choice: CaseIterable & Equatable>(choice: Choice) {
        bytes.append(UInt8(Array(Choice.allCases).firstIndex(of: choice)!))
    }

    mutating func add<Element>(_ list: [Element], _ body: (inout OutlineWriter, Element) -> Void) {
        add(count: list.count)
        for element in list { body(&self, element) }
    }

    mutating func add(_ version: SemanticVersion) {
        for number in [version.major, version.minor, version.patch] { add(number) }
        for parts in [version.prerelease, version.build] { add(parts) { $0.add($1) } }
    }
}

/// Reads what an ``OutlineWriter`` has written.
private struct OutlineReader {
    /// The bytes do not have the form that an ``OutlineWriter`` writes.
    struct Failure: Error {}

    private let bytes: UnsafeRawBufferPointer
    private var position = 0

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var isAtEnd: Bool { position == bytes.count }

    private mutating func take(_ count: Int) throws(Failure) -> UnsafeRawBufferPointer {
        guard count <= bytes.count - position else { throw Failure() }
        defer { position += count }
        return UnsafeRawBufferPointer(rebasing: bytes[position..<position + count])
    }

    mutating func number() throws(Failure) -> UInt64 {
        UInt64(littleEndian: try take(8).loadUnaligned(as: UInt64.self))
    }

    private mutating func count() throws(Failure) -> Int {
        Int(UInt32(littleEndian: try take(4).loadUnaligned(as: UInt32.self)))
    }

    mutating func text() throws(Failure) -> String { String(decoding: try take(try count()), as: UTF8.self) }

    mutating func flag() throws(Failure) -> Bool { try take(1)[0] == 1 }

    mutating func choice<Choice: CaseIterable>() throws(Failure) -> Choice {
        let (index, all) = (Int(try take(1)[0]), Choice.allCases)
        guard index < all.count else { throw Failure() }
        return all[all.index(all.startIndex, offsetBy: index)]
    }

    /// Each element takes at least one byte, so a valid count is at most the number of bytes that are left.
    mutating func list<Element>(_ element: (inout OutlineReader) throws -> Element) throws -> [Element] {
        let count = try count()
        guard count <= bytes.count - position else { throw Failure() }
        if count == 0 { return [] }
        var list: [Element] = []
        list.reserveCapacity(min(count, 256))
        for _ in 0..<count { list.append(try element(&self)) }
        return list
    }

    mutating func version() throws -> SemanticVersion {
        let (major, minor, patch) = try (number(), number(), number())
        return SemanticVersion(
            major, minor, patch, prerelease: try list { try $0.text() }, build: try list { try $0.text() })
    }
}
