/// A module: one type with a manifest.
///
///     struct Shop: Module {
///         static let manifest = Manifest("Shop", version: "1.0.0") { … }
///     }
///
///     @_cdecl("plugin_module_entry")
///     public func entry() -> UnsafePointer<plugin_module> { Shop.export() }
///
/// The entry function must be `public`; otherwise a release build does not export its symbol. (A debug build of SwiftPM
/// does.)
public protocol Module {
    /// The name and version of the module, and what it offers.
    static var manifest: Manifest { get }
}

extension Module {
    /// Returns the description that the entry function must return. It lives as long as the process.
    public static func export() -> UnsafePointer<plugin_module> { manifest.export() }
}

extension Manifest {
    /// Returns a description of the module. It lives as long as the process.
    package func export() -> UnsafePointer<plugin_module> { ModuleDescription(self).export() }
}

/// A module's description while it is being assembled, and the data behind it afterwards. Never freed.
public final class ModuleDescription {
    // The declarations of the parts, each as JSON.

    var targets: [String] = []
    var types: [String] = []
    var routes: [String] = []
    var services: [String] = []
    var hooks: [String] = []
    var events: [String] = []
    var requirements: [String] = []
    var permissions: [String] = []
    var requiresIsolation = false
    var interceptors: [String] = []
    var abiMinor = 0

    /// The types, if they are derived.
    let book: TypeBook?
    private let manifest: Manifest

    private var functions: [plugin_function] = []
    /// The functions, once the module is described.
    private nonisolated(unsafe) var described = UnsafeBufferPointer<plugin_function>(start: nil, count: 0)
    private var factories: [plugin_factory] = []
    /// The host's table. Set on activation, before any action is called, and not changed after that.
    fileprivate nonisolated(unsafe) var host: UnsafePointer<plugin_host>!

    /// Adds functions for actions, and returns the declarations of the actions for the manifest.
    func add(_ actions: [ActionDeclaration], prefix: String, showsResults: Bool = true) -> [String] {
        for action in actions {
            let function = ActionFunction(action.run, names: action.names(prefix), host: nil)
            functions.append(
                plugin_function(
                    name: .immortal(prefix + action.name), invoke: ActionFunction.invoke,
                    data: Unmanaged.passRetained(function).toOpaque()))
        }
        return actions.map { $0.json(showsResult: showsResults, book) }
    }

    func addFactory(_ target: String, _ make: @escaping @Sendable (HostContext) throws -> UnsafeMutableRawPointer) {
        let factory = BoundFactory(make, in: self)
        factories.append(
            plugin_factory(
                target: .immortal(target), make: BoundFactory.make, destroy: { destroyInstance($1) },
                data: Unmanaged.passRetained(factory).toOpaque()))
    }

    fileprivate init(_ manifest: Manifest, types book: TypeBook? = nil) {
        (self.manifest, self.book) = (manifest, book)
    }

    fileprivate func export() -> UnsafePointer<plugin_module> {
        for part in manifest.parts() { part.add(to: self) }
        var description = plugin_module()
        description.magic = UInt64(PLUGIN_ABI_MAGIC)
        description.size = UInt32(MemoryLayout<plugin_module>.size)
        description.abi_major = UInt16(PLUGIN_ABI_MAJOR)
        description.abi_minor = UInt16(PLUGIN_ABI_MINOR)
        description.toolchain = .immortal(Toolchain.current)
        description.manifest = .immortal(json)
        // The text of the manifest contains these declarations.
        (targets, types, routes, services, hooks, events, requirements, interceptors) = ([], [], [], [], [], [], [], [])
        permissions = []
        described = UnsafeBufferPointer(start: .immortal(functions), count: functions.count)
        description.functions = described.baseAddress
        description.function_count = UInt64(described.count)
        description.factories = .immortal(factories)
        description.factory_count = UInt64(factories.count)
        (functions, factories) = ([], [])  // The description has copies.
        description.data = Unmanaged.passRetained(self).toOpaque()
        description.activate = { data, host in
            Unmanaged<ModuleDescription>.fromOpaque(data!).takeUnretainedValue().activate(host!)
            return 0
        }
        description.get_extension = { _, identifier in
            identifier.text == PLUGIN_TYPES_EXTENSION ? ModuleDescription.derivation : nil
        }
        return .immortal([description])
    }

    private func activate(_ host: UnsafePointer<plugin_host>) {
        self.host = host
        for function in described {
            Unmanaged<ActionFunction>.fromOpaque(function.data)._withUnsafeGuaranteedRef { $0.host = host }
        }
    }

    /// A `plugin_type_derivation`. Never freed.
    private nonisolated(unsafe) static let derivation: UnsafeRawPointer = {
        var derivation = plugin_type_derivation()
        derivation.size = UInt32(MemoryLayout<plugin_type_derivation>.size)
        derivation.derive = { data, without, begin, context in
            Unmanaged<ModuleDescription>.fromOpaque(data!).takeUnretainedValue()
                .derivedTypes(without: without.text.split(separator: "\n").map(String.init)) { type in
                    type.withPluginString { begin?(context, $0) }
                }
        }
        return UnsafeRawPointer(UnsafePointer.immortal([derivation]))
    }()

    /// Derives the types of the module. Runs code of its author.
    private func derivedTypes(without: [String], _ begin: @escaping (String) -> Void) -> plugin_types {
        let parts = manifest.parts()
        let objects = parts.compactMap { $0 as? ObjectTypeDeclaration }.map { ($0.instanceType, $0.name) }
        var book = TypeBook(objects: objects, without: without, begin)
        var text = describe(parts, book)
        // Each round finds at least one more type that is not a record.
        while book.isInvalid {
            book = TypeBook(objects: objects, without: without, refused: book.refused, begin)
            text = describe(parts, book)
        }
        var notes = book.notes
        if text.utf8.count > PLUGIN_MANIFEST_MAX_BYTES {
            text = json
            notes = ["With the types, the manifest would have more than \(PLUGIN_MANIFEST_MAX_BYTES) bytes."]
        }
        return plugin_types(manifest: .immortal(text), notes: .immortal(notes.joined(separator: "\n")))
    }

    /// Returns the manifest with types.
    private func describe(_ parts: [any ManifestPart], _ book: TypeBook) -> String {
        let description = ModuleDescription(manifest, types: book)
        for part in parts { part.add(to: description) }
        return description.json
    }

    private var json: String {
        var entry = ManifestObject(name: manifest.name)
        entry.add("version", .string(manifest.version))
        entry.add("targets", targets)
        if !manifest.summary.isEmpty { entry.add("summary", .string(manifest.summary)) }
        if manifest.concurrency != .concurrent { entry.add("concurrency", .string(manifest.concurrency.rawValue)) }
        if manifest.level != .normal { entry.add("level", .string(manifest.level.rawValue)) }
        if manifest.priority != 0 { entry.add("priority", .int(manifest.priority)) }
        if !types.isEmpty { entry.add("types", types) }
        if let book, !book.declarations.isEmpty { entry.add("values", book.declarations) }
        if !routes.isEmpty { entry.add("routes", routes) }
        if !services.isEmpty { entry.add("services", services) }
        if !events.isEmpty { entry.add("events", events) }
        if !interceptors.isEmpty { entry.add("interceptors", interceptors) }
        if !hooks.isEmpty { entry.add("hooks", hooks) }
        if manifest.isExclusive { entry.add("exclusive", true) }
        if manifest.start != .automatic { entry.add("start", .string(manifest.start.rawValue)) }
        if manifest.isStateless { entry.add("stateless", true) }
        if !requirements.isEmpty { entry.add("requires", requirements) }
        if !permissions.isEmpty { entry.add("permissions", permissions) }
        if requiresIsolation { entry.add("isolation", .string("required")) }
        if abiMinor != 0 { entry.add("abiMinor", .int(abiMinor)) }
        return entry.json
    }
}

extension ActionDeclaration {
    /// Returns the declaration as JSON, with types if there is a book of them.
    func json(showsResult: Bool, _ book: TypeBook?) -> String {
        var entry = ManifestObject(name: name)
        if !summary.isEmpty { entry.add("summary", .string(summary)) }
        if isAsync { entry.add("async", true) }
        if isRemote { entry.add("remote", true) }
        if isIdempotent { entry.add("idempotent", true) }
        if !demands.isEmpty { entry.add("demands", .list(demands.map(Value.string))) }
        if let handledPrefix { entry.add("handles", .string(handledPrefix)) }
        if !parameters.isEmpty { entry.add("parameters", parameters.map { $0.json(book) }) }
        if hasRest { entry.add("rest", true) }
        if showsResult {
            let type = result.type.flatMap { book?.name(of: $0(), declared: result.kind) } ?? result.kind.rawValue
            if type != Value.Kind.any.rawValue { entry.add("result", .string(type)) }
        }
        return entry.json
    }
}

extension ParameterDeclaration {
    fileprivate func json(_ book: TypeBook?) -> String {
        var entry = ManifestObject(name: name)
        let type = swiftType.flatMap { book?.name(of: $0(), declared: kind) } ?? kind.rawValue
        entry.add("type", .string(type))
        if isRequired { entry.add("required", true) }
        if !defaultValue.isNull { entry.add("default", defaultValue) }
        if !summary.isEmpty { entry.add("summary", .string(summary)) }
        return entry.json
    }
}

private final class BoundFactory {
    private let makeInstance: @Sendable (HostContext) throws -> UnsafeMutableRawPointer
    private unowned(unsafe) let module: ModuleDescription

    init(
        _ make: @escaping @Sendable (HostContext) throws -> UnsafeMutableRawPointer, in module: ModuleDescription
    ) {
        (makeInstance, self.module) = (make, module)
    }

    static let make:
        @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<plugin_call>?) -> UnsafeMutableRawPointer? = {
            data, call in
            let factory = Unmanaged<BoundFactory>.fromOpaque(data!).takeUnretainedValue()
            let context = HostContext(host: factory.module.host, call: call!.pointee.token)
            do {
                return try factory.makeInstance(context)
            } catch {
                context.host.reject(context.call, error)
                return nil
            }
        }
}

// The memory that a description points to is never freed, like the code that it describes.

extension UnsafePointer {
    fileprivate static func immortal(_ elements: [Pointee]) -> UnsafePointer<Pointee> {
        let copy = UnsafeMutablePointer<Pointee>.allocate(capacity: max(1, elements.count))
        copy.initialize(from: elements, count: elements.count)
        return UnsafePointer(copy)
    }
}
