public import PluginABI
import PluginFile

/// The manifest of a module that serves or is registered.
public struct ServedManifest: Sendable {
    /// The file that the module was loaded from. It may have changed since.
    public let file: String
    /// The copy of that file that was opened; `nil` if the module is part of the program, or has not started yet.
    public let copy: String?
    /// A digest of the file's content, as hexadecimal digits: it tells files apart, and does not protect from forgery.
    /// `nil` if the module is part of the program.
    public let digest: String?
    /// The JSON, without the types that the module derives from its code.
    public let text: String

    fileprivate init(_ module: LoadedModule, copy: String?) {
        let isFile = module.staged.source == .file
        (file, text) = (module.file, module.manifestText)
        self.copy = isFile ? copy : nil
        digest = isFile ? String(module.staged.digest, radix: 16) : nil
    }
}

extension PluginHost {
    /// Returns the manifest of the module that serves, or is registered, under a name. Runs no code of the module.
    ///
    /// - Parameter name: The name of the module, as in ``ModuleStatus/name``.
    /// - Throws: ``/PluginABI/PluginError/Code/unknownModule``.
    public func servedManifest(of name: String) throws(PluginError) -> ServedManifest {
        let (module, generation) = try served(name)
        return ServedManifest(module, copy: generation?.stagedPath)
    }

    /// Returns the manifest of the module that serves, or is registered, under a name, with the types that its code
    /// derives: records, enumerations and object types.
    ///
    /// The types are read from the seal of the module's file. If a module in Swift is not sealed, a process opens its
    /// file again, and runs code of the module such as `init(from:)` of its types: some milliseconds, in which the
    /// calling thread waits. Modules in other languages name their types in their manifests.
    ///
    /// - Parameters:
    ///   - name: The name of the module, as in ``ModuleStatus/name``.
    ///   - timeout: How long that process may take; positive.
    /// - Returns: JSON; without types if there are none, if the code crashes or takes too long, or if there is no program
    ///   for such processes (``Isolation/workerPath``).
    /// - Throws: ``/PluginABI/PluginError/Code/unknownModule``.
    public func typedManifest(of name: String, timeout: Duration) throws(PluginError) -> String {
        let (module, _) = try served(name)
        guard module.staged.source == .file, !module.toolchain.isEmpty else { return module.manifestText }
        guard let types = try? types(of: module, timeout), let typed = try? Value(json: types),
            let plain = try? Value(json: module.manifestText),
            typed["name"] == plain["name"], typed["version"] == plain["version"]
        else { return module.manifestText }
        return types
    }

    private func types(of module: LoadedModule, _ timeout: Duration) throws(PluginError) -> String? {
        if module.isOpen { return try types(of: module, in: module.staged, timeout) }
        // There is no copy of a registered module.
        let staging = try Staging()
        defer { staging.close() }
        let staged = try staging.stageWhenWritten(path: module.file, checkTrust: !configuration.trustsEveryone)
        return staged.digest == module.staged.digest ? try types(of: module, in: staged, timeout) : nil
    }

    private func types(
        of module: LoadedModule, in file: StagedFile, _ timeout: Duration
    ) throws(PluginError) -> String? {
        let types = file.image.seal.map(\.typedManifest) ?? Self.derivedTypes(file, configuration, timeout)
        if let types { try module.checkTypes(types) }
        return types
    }

    private func served(_ name: String) throws(PluginError) -> (LoadedModule, Generation?) {
        let table = calls.registry.table
        if let known = table.contents.known.modules.first(where: { $0.name == name }) { return (known, nil) }
        let generations = table.generations
        guard let generation = generations.first(where: { $0.name == name }), let module = generation.module else {
            throw PluginError(
                .unknownModule,
                "No module “\(name.shortened)” serves.\(didYouMean(name, generations.map(\.name)))")
        }
        return (module, generation)
    }
}
