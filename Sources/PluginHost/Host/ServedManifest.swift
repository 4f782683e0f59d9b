public import PluginABI
import PluginFile

/// The manifest of a module that serves or is registered.
public struct ServedManifest: Sendable {
    /// The file that the module was loaded from. It may have changed since.
    public let file: String
    /// The copy of that file that was opened; `nil` if the module is part of the program, or has not started yet.
    public let copy: String?
    /// The JSON, without the types that the module derives from its code.
    public let text: String
}

extension PluginHost {
    /// Returns the manifest of the module that serves, or is registered, under a name. Runs no code of the module.
    ///
    /// - Parameter name: The name of the module, as in ``ModuleStatus/name``.
    /// - Throws: ``/PluginABI/PluginError/Code/unknownModule``.
    public func servedManifest(of name: String) throws(PluginError) -> ServedManifest {
        let table = calls.registry.table
        if let known = table.contents.known.modules.first(where: { $0.name == name }) {
            return ServedManifest(file: known.file, copy: nil, text: known.manifestText)
        }
        let generations = table.generations
        guard let generation = generations.first(where: { $0.name == name }), let module = generation.module else {
            throw PluginError(
                .unknownModule,
                "No module “\(name.shortened)” serves.\(didYouMean(name, generations.map(\.name)))")
        }
        return ServedManifest(
            file: module.file, copy: module.staged.source == .file ? generation.stagedPath : nil,
            text: module.manifestText)
    }
}
