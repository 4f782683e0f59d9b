import PluginABI
import PluginFile

extension ChangeContext {
    /// Loads and starts the failed files of a module once more.
    ///
    /// - Parameter name: The name of the module, or the path of its file.
    /// - Throws: `unknownModule` if no such file has failed; the error of the first one that fails again.
    func retry(_ name: String) throws(PluginError) {
        let paths = folders.records.values.filter { record in
            record.isFailure && (record.path.hasBytes(of: name) || record.claimedModule?.manifest.name == name)
        }.map(\.path).sorted()
        guard !paths.isEmpty else {
            throw PluginError(
                .unknownModule,
                "No file of a module “\(name.shortened)” has failed. 'pluginhost list' shows modules and their states.")
        }
        for path in paths { FileScan(context: self).reload(path) }
        patiently { reconcile() }
        for path in paths {
            if let error = folders.records[path]?.error { throw error }
        }
    }
}
