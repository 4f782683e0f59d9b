import Foundation
import PluginHost
import Synchronization

/// The manifests of modules with the types that they derive from their code: records, enumerations and object types.
/// They are derived when a description is asked for, once for each file.
final class TypedManifests: Sendable {
    private struct Key: Hashable {
        let name: String
        let digest: String
    }

    private struct State {
        var known: [Key: String] = [:]
        var deriving: Task<Bool, Never>?
    }

    /// How long the code of one module may take.
    private static let timeout = Duration.seconds(5)

    private let host: PluginHost
    private let state = Mutex(State())

    init(_ host: PluginHost) { self.host = host }

    /// Returns the manifest of a module, with types if they have been derived.
    func text(_ name: String, _ served: ServedManifest) -> String {
        guard let digest = served.digest else { return served.text }
        return state.withLock { $0.known[Key(name: name, digest: digest)] } ?? served.text
    }

    /// Derives the types of the modules that serve or are registered, unless they are known. Requests at the same time
    /// wait for the same processes.
    ///
    /// - Returns: Whether there are new ones.
    func derive() async -> Bool {
        let task = state.withLock { state in
            if let deriving = state.deriving { return deriving }
            let task = Task { [self] in
                // The thread waits for processes.
                let isNew = await withCheckedContinuation { continuation in
                    Thread.detachNewThread { continuation.resume(returning: self.deriveMissing()) }
                }
                self.state.withLock { $0.deriving = nil }
                return isNew
            }
            state.deriving = task
            return task
        }
        return await task.value
    }

    private func deriveMissing() -> Bool {
        let keys = host.modules.compactMap { $0.name.flatMap(key) }
        let missing = state.withLock { state in
            let present = Set(keys)
            state.known = state.known.filter { present.contains($0.key) }
            return keys.filter { state.known[$0] == nil }
        }
        for key in missing {
            // The module may have been replaced since, and be replaced meanwhile.
            guard let text = try? host.typedManifest(of: key.name, timeout: Self.timeout), self.key(key.name) == key
            else { continue }
            state.withLock { $0.known[key] = text }
        }
        return !missing.isEmpty
    }

    private func key(_ name: String) -> Key? {
        (try? host.servedManifest(of: name))?.digest.map { Key(name: name, digest: $0) }
    }
}
