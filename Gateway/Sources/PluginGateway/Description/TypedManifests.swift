import GatewayThreads
import PluginABI
import PluginHost
import Synchronization

/// The types that modules derive from their code: records, enumerations and object types. They are derived when a
/// description is asked for, once for each file, one module after the other.
final class TypedManifests: Sendable {
    private struct Key: Hashable {
        let name: String
        let digest: String
    }

    private struct State {
        var known: [Key: Value] = [:]
        /// How often the types of a file could not be derived, and when that is tried again.
        var failed: [Key: (count: Int, next: ContinuousClock.Instant)] = [:]
        /// Whether a thread derives types.
        var isDeriving = false
        /// Increases with each module whose types become known.
        var version = 0
        /// The version of the catalog for which nothing remains to be derived.
        var settled: Int?
    }

    /// How long the code of one module may take.
    private static let timeout = Duration.seconds(5)
    /// How often the types of a file are derived if that fails, and how much time passes in between.
    private static let attempts = (count: 3, pause: Duration.seconds(10))

    private let host: PluginHost
    /// A thread that waits for processes: not one of those for calls.
    private let threads = ThreadPool(limit: 1)
    private let state = Mutex(State())

    init(_ host: PluginHost) { self.host = host }

    /// Changes when more types are known.
    var version: Int { state.withLock(\.version) }

    /// Returns a manifest with the types that have been derived.
    func manifest(_ name: String, _ served: ServedManifest) -> Value? {
        guard let plain = try? Value(json: served.text) else { return nil }
        guard let digest = served.digest,
            let typed = state.withLock({ $0.known[Key(name: name, digest: digest)] })
        else { return plain }
        var entries = plain.withTypes(of: typed).map ?? [:]
        entries["values"] = typed["values"]
        return .map(entries)
    }

    /// Derives the types of the modules that serve or are registered, unless they are known, and waits for that, but not
    /// for long: what takes longer continues, and is there for a later request.
    ///
    /// - Parameter version: The version of the catalog.
    func derive(_ version: Int, within patience: Duration) async {
        let end = ContinuousClock.now + patience
        while start(version), ContinuousClock.now < end {
            repeat {
                guard (try? await Task.sleep(for: .milliseconds(5))) != nil else { return }  // The task is cancelled.
            } while state.withLock(\.isDeriving) && ContinuousClock.now < end
        }
    }

    /// Starts to derive what is missing, unless a thread does so already. Returns false if nothing is missing.
    private func start(_ version: Int) -> Bool {
        if state.withLock({ $0.settled == version }) { return false }
        let keys = Set(
            host.modules.filter { $0.state == .active || $0.state == .registered }.compactMap { $0.name.flatMap(key) })
        let missing: Set<Key>? = state.withLock { state in
            if state.isDeriving { return nil }
            state.known = state.known.filter { keys.contains($0.key) }
            state.failed = state.failed.filter { keys.contains($0.key) }
            let unknown = keys.filter { state.known[$0] == nil }
            let hopeless = unknown.filter { (state.failed[$0]?.count ?? 0) >= Self.attempts.count }
            if unknown.count == hopeless.count { state.settled = version }
            let missing = unknown.subtracting(hopeless).filter { state.failed[$0].map { $0.next <= .now } ?? true }
            state.isDeriving = !missing.isEmpty
            return missing
        }
        guard let missing else { return true }
        if !missing.isEmpty {
            threads.run {
                for key in missing { self.derive(key) }
                self.state.withLock { $0.isDeriving = false }
            }
        }
        return !missing.isEmpty
    }

    private func derive(_ wanted: Key) {
        let typed = (try? host.typedManifest(of: wanted.name, timeout: Self.timeout)).flatMap { try? Value(json: $0) }
        // The module may have been replaced meanwhile.
        guard key(wanted.name) == wanted else { return }
        state.withLock { state in
            if let typed {
                state.known[wanted] = typed
                state.version += 1
            } else {
                state.failed[wanted] = ((state.failed[wanted]?.count ?? 0) + 1, .now + Self.attempts.pause)
            }
        }
    }

    private func key(_ name: String) -> Key? {
        (try? host.servedManifest(of: name))?.digest.map { Key(name: name, digest: $0) }
    }
}

extension Value {
    /// Returns a manifest with the types that another one has at the same places. All else stays: the other one may come
    /// from a process, or a seal, that says anything. The type of parameters for objects stays, too, since clients give
    /// callbacks for all of them.
    fileprivate func withTypes(of other: Value) -> Value {
        switch (self, other) {
        case (.map(var entries), .map(let others)):
            for (key, value) in entries where key != "type" {
                if let typed = others[key] { entries[key] = value.withTypes(of: typed) }
            }
            if let type = entries["type"]?.string, let typed = others["type"], !["object", "object?"].contains(type) {
                entries["type"] = typed
            }
            if entries["name"] != nil, let result = others["result"] { entries["result"] = result }
            return .map(entries)
        case (.list(let items), .list(let others)) where items.count == others.count:
            return .list(zip(items, others).map { $0["name"] == $1["name"] ? $0.withTypes(of: $1) : $0 })
        default: return self
        }
    }
}
