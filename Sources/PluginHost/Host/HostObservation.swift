package import PluginABI

extension PluginHost {
    /// What was called so far, by module and action: how often, with how many errors, and how long it took. What was
    /// never called is not in it.
    ///
    /// Counting costs a call a few instructions: each thread counts for itself, and this sums up. So the figures of one
    /// moment may be of slightly different moments.
    public var statistics: [ActionStatistics] { core.statistics.all }
}

extension PluginHost {
    /// Where the time has gone so far. A host keeps the first 100,000 entries.
    public var profile: HostProfile { core.profiler.profile }
}

extension PluginHost {
    /// Every generation of every module: what serves, what still drains and why,
    /// and the last hundred that were retired.
    public var generations: [GenerationStatus] { lifecycle.generations }

    /// How many generations were torn down since the start, and what they still take.
    public var retiredTotal: RetiredTotal { lifecycle.retiredTotal }
}

extension PluginHost {
    /// The module that an object belongs to, and its type, as in ``LiveObjects``.
    package func origin(of object: Object) -> (module: String, type: String) {
        let type = ObjectTable.contents(of: object.handle).0
        return (type.generation.name, type.name)
    }

    /// What somebody holds of this host's modules, and of the program's callbacks. Looks at every object of the process:
    /// for tests and diagnosis.
    package var liveObjects: [LiveObjects] {
        struct Key: Hashable { let module, type: String }
        var counts: [Key: Int] = [:]
        ObjectTable.forEachLive { type in
            guard type.generation.core === core else { return }
            // The handlers of events that the program has subscribed to are no values that somebody was given.
            guard type.generation !== calls.program || type.name == "callback" else { return }
            counts[Key(module: type.generation.name, type: type.name), default: 0] += 1
        }
        return counts.map { LiveObjects(module: $0.module, type: $0.type, count: $1) }
            .sorted { ($0.module, $0.type) < ($1.module, $1.type) }
    }
}
