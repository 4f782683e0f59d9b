import PluginABI
import PluginFile

extension LoadedModule {
    /// Returns the manifest with the types that the module derives from its code, and the module's notes on types that
    /// it cannot derive; `nil` if it derives none. Runs code of the module.
    ///
    /// - Throws: `invalidDescription` or `invalidManifest`.
    func derivedTypes() throws(PluginError) -> (manifest: String, notes: [String])? {
        guard process == nil, let found = plugin_type_derivation_of(description) else { return nil }
        let memory = ReadableMemory(of: file)
        try memory.require(found, MemoryLayout<plugin_type_derivation>.size, "the derivation of types")
        guard found.pointee.size >= MemoryLayout<plugin_type_derivation>.size, let derive = found.pointee.derive else {
            throw PluginError(.invalidDescription, "The table \(PLUGIN_TYPES_EXTENSION) of \(file) has a wrong size.")
        }
        let types = derive(description.pointee.data, plugin_string(), nil, nil)
        guard max(types.manifest.count, types.notes.count) <= PLUGIN_MANIFEST_MAX_BYTES else {
            throw PluginError(
                .invalidManifest,
                "The manifest of \(file) with types has more than \(PLUGIN_MANIFEST_MAX_BYTES) bytes.")
        }
        for (text, field) in [(types.manifest, "the manifest with types"), (types.notes, "the notes about types")] {
            try memory.require(text.bytes, Int(text.count), field)
            try text.check(field)
        }
        try checkTypes(types.manifest.text)
        return (types.manifest.text, types.notes.text.split(separator: "\n").map(String.init))
    }

    /// Checks that a manifest with types is valid, and that of this module.
    func checkTypes(_ manifest: String) throws(PluginError) {
        let typed = try manifest.utf8Span.span.withUnsafeBytes { text throws(PluginError) in
            try ModuleManifest(parsing: text, abiMinor: abiMinor)
        }
        guard (typed.name, typed.version) == (self.manifest.name, self.manifest.version) else {
            throw PluginError(
                .invalidManifest,
                "The manifest of \(file) with types is that of \(typed.name) \(typed.version), and the other one that of "
                    + "\(self.manifest.name) \(self.manifest.version).")
        }
    }
}
