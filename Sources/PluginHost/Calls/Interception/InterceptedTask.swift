import CPluginABI
import Synchronization

/// Tasks of interceptors.
enum InterceptedTask {
    @TaskLocal private static var ownCall: plugin_token = 0
    /// Whether there has been one: most programs have none, and to ask a task takes as long as half a call.
    private static let wereAny = Atomic(false)

    /// The call that this task works on, as the parent of calls that it makes; 0 in other tasks.
    static var call: plugin_token { wereAny.load(ordering: .relaxed) ? ownCall : 0 }

    /// Runs what works on a call.
    static func run<Result>(for call: plugin_token, _ body: () async throws -> Result) async rethrows -> Result {
        wereAny.store(true, ordering: .relaxed)
        return try await $ownCall.withValue(call, operation: body)
    }
}
