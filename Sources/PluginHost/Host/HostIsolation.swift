public import PluginABI

extension PluginHost {
    /// Starts an isolated module again, in a new process, from the same file. The module hands its state over if it
    /// can, as when a new version replaces it. A module that has failed is tried once more. The number of crashes after
    /// which a module has failed is not reset.
    ///
    /// - Parameter name: The name of a module that runs in a process of its own.
    /// - Throws: ``/PluginABI/PluginError/Code/unknownModule`` if there is no such module, or it is not isolated; the
    ///   error of its start, in which case the module continues to serve;
    ///   ``/PluginABI/PluginError/Code/circularWait`` if called by code that runs during a change of modules;
    ///   ``/PluginABI/PluginError/Code/hostStopped``.
    public func restart(_ name: String) throws(PluginError) { try lifecycle.restart(name) }

    /// Runs an isolated module, or scans files, if a host has started this process for that; then the function does not
    /// return. In all other cases, it does nothing.
    ///
    ///     @main struct Program {
    ///         static func main() throws {
    ///             PluginHost.runWorkerIfAsked()
    ///             …
    ///
    /// For programs that are installed without `pluginhost-worker`: hosts of a program that has called this function
    /// start the program itself for isolated modules, unless `pluginhost-worker` is beside it or
    /// ``Isolation/workerPath`` is set. Such a process takes as long to start as the program does, and refuses modules
    /// of other Swift toolchains as the host does.
    ///
    /// Call it first in the main function, in every run of the program, and before threads are started: a process that
    /// has other threads ends with an error, since its sandbox would not restrict them. A program that runs with the
    /// rights of its file (set-user-id) is not started in this way.
    public static func runWorkerIfAsked() { WorkerProgram.runIfAsked() }
}
