import Foundation
import Synchronization

extension Lifecycle {
    /// Every generation of the folders, those that serve first; of those that are retired, the last hundred.
    var generations: [GenerationStatus] {
        let (served, draining, retired) = state.withLock { ($0.served, $0.draining + $0.leaving, $0.retired) }
        return served.values.map { GenerationStatus($0.generation, .active, since: $0.since) }.sorted {
            $0.name < $1.name
        }
            + draining.map { GenerationStatus($0.generation, .draining, since: $0.since) } + retired
    }
}
