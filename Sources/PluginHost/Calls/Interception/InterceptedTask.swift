import CPluginABI
import Synchronization

/// The tasks in which interceptors run.
enum InterceptedTask {
    @TaskLocal private static var ownCall: plugin_token = 0
    /// Whether such a task has ever run. Most programs have none, and reading a task-local value takes half as long as
    /// a call.
    private static let wereAny = Atomic(false)

    /// The call that this task works on, as the parent of calls that it makes; 0 in other tasks.
    static var call: plugin_token { wereAny.load(ordering: .relaxed) ? ownCall : 0 }

    /// Runs `body` as work on a call. Meanwhile, ``call`` returns that call.
    static func run<Result>(for call: plugin_token, _ body: () async throws -> Result) async rethrows -> Result {
        wereAny.store(true, ordering: .relaxed)
        return try await $ownCall.withValue(call, operation: body)
    }
}
