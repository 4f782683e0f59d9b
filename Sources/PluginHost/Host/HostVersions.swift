public import Foundation
public import PluginABI
import PluginFile
import Synchronization

extension PluginHost {
    /// Removes a module in order: moves its files out of the plugins folders to the store of kept versions, and what
    /// depends on it waits from then on. ``rollback(_:to:force:dryRun:)`` puts it back.
    ///
    ///     print(try host.remove("Accounts", dryRun: true))
    ///     try host.remove("Accounts")
    ///
    /// All of it is done or nothing. Modules that serve in its place (one of its versions that is linked into the program)
    /// or that can start when it has gone do so.
    ///
    /// - Parameters:
    ///   - name: The name of a module that lies in a plugins folder.
    ///   - force: Removes it even if others depend on it.
    ///   - dryRun: Says what would be done, and does nothing.
    /// - Returns: What was done, or would be.
    /// - Throws: ``/PluginABI/PluginError/Code/required``, naming who depends on it;
    ///   ``/PluginABI/PluginError/Code/unknownModule``; ``/PluginABI/PluginError/Code/conflict`` if it is a part of the
    ///   program, or its file holds something else by now; ``/PluginABI/PluginError/Code/unreadable`` if a file cannot be
    ///   moved; ``/PluginABI/PluginError/Code/circularWait`` from code that a change of modules runs;
    ///   ``/PluginABI/PluginError/Code/hostStopped``.
    @discardableResult
    public func remove(_ name: String, force: Bool = false, dryRun: Bool = false) throws(PluginError) -> PlannedChange {
        try lifecycle.remove(name, force: force, dryRun: dryRun)
    }
}

extension PluginHost {
    /// Puts the version before back into the plugins folder, by rename, under the name that its file had. The folder stays
    /// the truth, also after a restart.
    ///
    ///     try host.rollback("Accounts")       // back to the version before
    ///     try host.rollback("Accounts")       // and forward again
    ///
    /// It is the version that was kept last and does not serve now; where none is kept, what is superseded in the folder.
    /// A file that was broken while its module goes on gets the content that serves. A module that was removed comes back.
    /// What is replaced is kept, if it is a module. If the version that is put back does not start, everything is put back as it was, and the
    /// error says why.
    ///
    /// - Parameters:
    ///   - name: The name of a module.
    ///   - version: Another one of ``keptVersions(of:)``; nil for the version before.
    ///   - force: Does it even if others depend on the version that serves.
    ///   - dryRun: Says what would be done, and does nothing; the version that would be put back is opened for that.
    /// - Returns: What was done, or would be.
    /// - Throws: ``/PluginABI/PluginError/Code/noVersionKept``; ``/PluginABI/PluginError/Code/required``, naming who
    ///   depends on what serves now; what the version that is put back fails with;
    ///   ``/PluginABI/PluginError/Code/unreadable`` if a file cannot be written;
    ///   ``/PluginABI/PluginError/Code/circularWait`` from code that a change of modules runs;
    ///   ``/PluginABI/PluginError/Code/hostStopped``.
    @discardableResult
    public func rollback(
        _ name: String, to version: String? = nil, force: Bool = false, dryRun: Bool = false
    ) throws(PluginError) -> PlannedChange {
        try lifecycle.rollback(name, to: version, force: force, dryRun: dryRun)
    }
}

extension PluginHost {
    /// The versions of a module that are kept, for the folders of this host; the newest first.
    ///
    /// A version is kept when it stops serving because its file was changed, deleted, removed or rolled back. The store
    /// lies in ``HostConfiguration/stateFolder`` and outlives the host. What is damaged, or could have been written by others,
    /// is left out, and ``problems`` says why.
    ///
    /// - Parameter name: The name of a module, also of one that is not there any more.
    public func keptVersions(of name: String) -> [KeptModule] {
        let served = lifecycle.served(name)
        return (lifecycle.store?.kept(name, for: configuration) ?? []).map { kept, path in
            KeptModule(
                name: name, version: kept.version.description, file: path, kept: kept.date, bytes: kept.bytes,
                isServing: served?.module.staged.digest == kept.digest)
        }
    }

    /// Why kept versions of a module are left out, one error for each.
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
    /// Where it is put back.
    public let file: String
    /// When it stopped serving, or was moved out of the folder.
    public let kept: Date
    /// What it takes, with the libraries that came with it.
    public let bytes: Int
    /// Whether this content serves now.
    public let isServing: Bool
}
