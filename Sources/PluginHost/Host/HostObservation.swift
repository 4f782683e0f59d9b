package import PluginABI

extension PluginHost {
    /// The number of calls so far, by module and action, with the number of errors and the time that the calls took.
    /// Actions that were never called are left out.
    ///
    /// Counting costs a call a few instructions: each thread counts for itself, and this property adds up the counters.
    /// The figures may therefore be from slightly different moments.
    public var statistics: [ActionStatistics] { core.statistics.all }

    /// How the host has spent its time so far. A host keeps the first 100,000 entries.
    public var profile: HostProfile { core.profiler.profile }

    /// Adds a mark of the program to the ``profile``. See ``/PluginABI/HostContext/mark(_:lasting:)``.
    public func mark(_ name: String, lasting duration: Duration = .zero) { program.mark(name, lasting: duration) }

    /// Runs `body`, and adds a mark of the program to the ``profile``, with the time that it took.
    public func measure<Result, Failure: Error>(
        _ name: String, _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try program.measure(name, body)
    }

    /// Runs `body`, and adds a mark of the program to the ``profile``, with the time until its end.
    public func measure<Result, Failure: Error>(
        _ name: String, _ body: () async throws(Failure) -> Result
    ) async throws(Failure) -> Result {
        try await program.measure(name, body)
    }

    /// Every generation of every module: those that serve, those that still drain and why, and the last hundred that
    /// were retired.
    public var generations: [GenerationStatus] { lifecycle.generations }

    /// The number of generations that were torn down since the start, and the memory that they still occupy.
    public var retiredTotal: RetiredTotal { lifecycle.retiredTotal }

    /// Returns the module that an object belongs to, and the object's type, as in ``HeldObjects``. The module is empty
    /// for an object of the program.
    package func origin(of object: Object) -> (module: String, type: String) {
        let type = ObjectTable.contents(of: object.handle).0
        return (type.generation.name, type.name)
    }

    /// The objects of this host's modules, and those of the program, that have holders. Looks at every object of the
    /// process, so it is for tests and diagnosis only.
    package var heldObjects: [HeldObjects] { HeldObjects.all { $0.generation.core === core && $0.isOfValues } }
}
