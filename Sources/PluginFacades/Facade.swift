public import PluginABI
import PluginFile
import PluginHost

/// A Swift file through which others call a module: a function for each action, with the types that the manifest
/// declares, so that the compiler checks what would else be a dictionary.
///
///     let facade = try Facade(manifest: json)
///     print(facade.text)
///
/// What it makes compiles in modules and in programs: it calls through a ``/PluginABI/Caller``. The command
/// `pluginhost facade` prints it. (CTMediator calls such a file a category, and people write it by hand.)
public struct Facade: Sendable {
    /// The source code. Equal manifests give equal text.
    public let text: String

    /// Makes the façade of a module.
    ///
    /// - Parameters:
    ///   - manifest: The module's manifest, JSON. What `PluginHost.inspect(file:)` says of it will do.
    ///   - name: The name of the enum that everything stands in; an identifier of Swift. Default: that of the module,
    ///     and `Facade`.
    ///   - isPublic: Makes everything public, for a library of façades. Default: it is internal.
    /// - Throws: ``/PluginABI/PluginError/Code/invalidManifest``; ``/PluginABI/PluginError/Code/incompatible`` where the
    ///   module needs a newer host; ``/PluginABI/PluginError/Code/invalidValue`` for a name
    ///   that is no identifier, or that the façade uses itself.
    public init(manifest: String, name: String? = nil, isPublic: Bool = false) throws(PluginError) {
        if let name, !SwiftNames.isPlain(name) {
            throw PluginError(
                .invalidValue,
                "“\(name.shortened)” is no name for a Swift type: letters, digits and _, no digit in front.")
        }
        if let name, SwiftNames.used.contains(name) {
            throw PluginError(
                .invalidValue, "“\(name.shortened)” is a type that the façade uses itself. “\(name)Facade” would do.")
        }
        // What this host does not know yet has no part in a façade.
        let parsed = try Bytes(manifest.utf8).withUnsafeBytes { text throws(PluginError) in
            try ModuleManifest(parsing: text, abiMinor: .max)
        }
        self.init(
            parsed, try parsed.routeGroups(),
            name: SwiftNames.escaped(name ?? SwiftNames.typeName(parsed.name) + "Facade"), isPublic: isPublic)
    }

    private init(_ manifest: ModuleManifest, _ groups: [[PatternGroup]?], name: String, isPublic: Bool) {
        let title = "\(manifest.name) \(manifest.version)"
        let access = isPublic ? "public " : ""
        var source = SwiftSource()
        source.line("// swift-format-ignore-file")
        source.line("// Made by `pluginhost facade` from the manifest of \(title).")
        source.line("// Do not change it by hand: make it again when the module has changed.")
        source.line()
        source.line("\(access)import PluginABI")
        source.line()
        source.document(
            manifest.summary, notes: ["Calls of \(title) that the compiler checks, in modules and in programs."])
        var names = SwiftNames(reserved: SwiftNames.used.union(["Routes"]))
        func take(_ words: [String]) -> [String] {
            names.take(words, form: SwiftNames.typeName).map(SwiftNames.escaped)
        }
        let (targets, types) = (take(manifest.targets.map(\.name)), take(manifest.types.map(\.name)))
        let services = take(manifest.services.map(\.name))
        let clients = take(manifest.services.map { SwiftNames.typeName($0.name) + "Client" })
        source.block("\(access)enum \(name)") { source in
            for (target, type) in zip(manifest.targets, targets) where !target.actions.isEmpty {
                FacadeActions(access: access, owner: target.name).write(target, as: type, to: &source)
            }
            for (objects, type) in zip(manifest.types, types) where !objects.actions.isEmpty {
                FacadeActions(access: access, owner: objects.name).write(objects, as: type, to: &source)
            }
            for (index, service) in manifest.services.enumerated() {
                guard let target = manifest.targets.first(where: { $0.name == service.target }) else { continue }
                FacadeActions(access: access, owner: service.name)
                    .write(service, of: target, services[index], clients[index], to: &source)
            }
            FacadeRoutes(manifest, groups, access: access)?.write(to: &source)
        }
        self.text = source.text
    }
}
