public import FoundationEssentials
public import PluginABI
import PluginFile

extension PluginHost {
    /// Removes a module: moves its files out of the plugins folders into the version store. Modules that depend on it
    /// wait from then on. ``rollback(_:to:force:dryRun:)`` puts it back.
    ///
    ///     print(try host.remove("Accounts", dryRun: true))
    ///     try host.remove("Accounts")
    ///
    /// A removal is carried out completely or not at all. A version of the module that is linked into the program then
    /// serves instead, and modules that could not start because of the removed one are started.
    ///
    /// - Parameters:
    ///   - name: The name of a module in a plugins folder.
    ///   - force: Whether to remove it even if others depend on it.
    ///   - dryRun: Whether to return what would be done, without doing it.
    /// - Returns: What was done, or would be done.
    /// - Throws: ``/PluginABI/PluginError/Code/required``, naming the modules that depend on it;
    ///   ``/PluginABI/PluginError/Code/unknownModule``; ``/PluginABI/PluginError/Code/conflict`` if it is a part of the
    ///   program, or its file has other content by now; ``/PluginABI/PluginError/Code/unreadable`` if a file cannot be
    ///   moved; ``/PluginABI/PluginError/Code/circularWait`` if called by code that runs during a change of modules;
    ///   ``/PluginABI/PluginError/Code/hostStopped``.
    @discardableResult
    public func remove(_ name: String, force: Bool = false, dryRun: Bool = false) throws(PluginError) -> PlannedChange {
        try lifecycle.remove(name, force: force, dryRun: dryRun)
    }

    /// Puts the previous version back into the plugins folder, by a rename, under the name that its file had. The
    /// content of the folder decides what serves, even after a restart.
    ///
    ///     try host.rollback("Accounts")       // back to the previous version
    ///     try host.rollback("Accounts")       // and forward again
    ///
    /// The previous version is the one that was kept last and does not serve now; if none is kept, it is the one that
    /// is superseded in the folder. If the file in the folder is broken while its module still serves, the file gets
    /// the serving content. A module that was removed is added again. The version that is replaced is kept, if it is a
    /// module. If the version that is put back does not start, everything is restored as it was, and the error says
    /// why.
    ///
    /// - Parameters:
    ///   - name: The name of a module.
    ///   - version: Another one of ``keptVersions(of:)``; `nil` for the previous version.
    ///   - force: Whether to roll back even if others depend on the version that serves.
    ///   - dryRun: Whether to return what would be done, without doing it. The version that would be put back is opened
    ///     for that.
    /// - Returns: What was done, or would be done.
    /// - Throws: ``/PluginABI/PluginError/Code/noVersionKept``; ``/PluginABI/PluginError/Code/required``, naming the
    ///   modules that depend on the version that serves now; the error of the version that is put back;
    ///   ``/PluginABI/PluginError/Code/unreadable`` if a file cannot be written;
    ///   ``/PluginABI/PluginError/Code/circularWait`` if called by code that runs during a change of modules;
    ///   ``/PluginABI/PluginError/Code/hostStopped``.
    @discardableResult
    public func rollback(
        _ name: String, to version: String? = nil, force: Bool = false, dryRun: Bool = false
    ) throws(PluginError) -> PlannedChange {
        try lifecycle.rollback(name, to: version, force: force, dryRun: dryRun)
    }

    /// Returns the kept versions of a module for the folders of this host, the most recently kept first.
    ///
    /// A version is kept when it stops serving because its file was changed, deleted, removed or rolled back. The
    /// version store is in ``HostConfiguration/stateFolder`` and outlives the host. Versions that are damaged, or that
    /// other users could have written, are left out, and ``problems`` says why.
    ///
    /// - Parameter name: The name of a module, which may no longer exist.
    public func keptVersions(of name: String) -> [KeptModule] {
        let served = lifecycle.served(name)
        return (lifecycle.store?.kept(name, for: configuration) ?? []).map { kept, path in
            KeptModule(
                name: name, version: kept.version.description, file: path, kept: kept.date, bytes: kept.bytes,
                isServing: served?.module.staged.digest == kept.digest)
        }
    }

    /// Returns why kept versions of a module are left out, one error for each.
    package func keptVersionsLeftOut(of name: String) -> [PluginError] {
        lifecycle.store?.leftOut(of: name) ?? []
    }
}

/// A version of a module that can be put back into its plugins folder.
public struct KeptModule: Sendable {
    /// The module's name.
    public let name: String
    /// The version.
    public let version: String
    /// The path to which the file is put back.
    public let file: String
    /// The time when the version stopped serving, or was moved out of the folder.
    public let kept: Date
    /// The size of the file in bytes, including the libraries that came with it.
    public let bytes: Int
    /// Whether this content serves now.
    public let isServing: Bool
}
