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
    /// calling thread waits. That process has no sandbox, so no types are derived for a module that runs isolated.
    /// Modules in other languages name their types in their manifests.
    ///
    /// - Parameters:
    ///   - name: The name of the module, as in ``ModuleStatus/name``.
    ///   - timeout: How long that process may take; positive.
    /// - Returns: JSON; ``ServedManifest/text`` if there are no types.
    /// - Throws: ``/PluginABI/PluginError/Code/unknownModule``; if the types cannot be derived,
    ///   ``/PluginABI/PluginError/Code/openFailed``, or the error that describes what is wrong with them or the file.
    public func typedManifest(of name: String, timeout: Duration) throws(PluginError) -> String {
        let (module, _) = try served(name)
        guard module.staged.source == .file, !module.toolchain.isEmpty else { return module.manifestText }
        if module.isOpen { return try types(of: module, in: module.staged, timeout) ?? module.manifestText }
        // There is no copy of a registered module.
        let staging = try Staging(
            base: configuration.stagingFolder, maximumFileBytes: configuration.maximumFileBytes)
        defer { staging.close() }
        let staged = try staging.stageWhenWritten(path: module.file, checkTrust: !configuration.trustsEveryone)
        guard staged.digest == module.staged.digest else {
            throw PluginError(.openFailed, "\(module.file) has changed since the host has read it.")
        }
        return try types(of: module, in: staged, timeout) ?? module.manifestText
    }

    private func types(
        of module: LoadedModule, in file: StagedFile, _ timeout: Duration
    ) throws(PluginError) -> String? {
        let types: String?
        if let seal = file.image.seal {
            types = seal.typedManifest
        } else if module.process != nil || configuration.isolation.isolates(module.name) {
            types = nil
        } else {
            types = try Self.derivedTypes(file, configuration, timeout)
        }
        if let types { try module.checkTypes(types) }
        return types
    }

    private func served(_ name: String) throws(PluginError) -> (LoadedModule, Generation?) {
        let table = calls.registry.table
        if let known = table.contents.known.module(named: name) { return (known, nil) }
        let generations = table.generations
        guard let generation = generations.first(where: { $0.name == name }), let module = generation.module else {
            throw PluginError(
                .unknownModule,
                "No module “\(name.shortened)” serves.\(didYouMean(name, generations.map(\.name)))")
        }
        return (module, generation)
    }
}
