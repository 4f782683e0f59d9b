import CPluginHost
import Dispatch
import PluginABI
import Synchronization

/// Runs code of modules that must end by a deadline, one piece at a time.
///
/// Code is never interrupted: what does not end in time keeps its thread, and whatever follows gets another one.
final class HookRunner: Sendable {
    /// A thread and what it is to do next; nil ends it.
    private final class Worker: Sendable {
        let work = Mutex<(@Sendable () -> Void)?>(nil)
        let isWanted = DispatchSemaphore(value: 0)

        /// - Throws: `outOfResources`.
        init(_ idle: Idle) throws(PluginError) {
            try DetachedThread.start("pluginhost.hook") { [self] in
                while true {
                    // A host that does not change, or has ended, keeps no thread.
                    if isWanted.wait(timeout: .now() + 1) == .timedOut {
                        if idle.remove(self) { return }
                        isWanted.wait()  // Somebody has just taken it.
                    }
                    guard let next = work.withLock({ $0.take() }) else { return }
                    next()
                }
            }
        }

        func begin(_ body: @escaping @Sendable () -> Void) {
            work.withLock { $0 = body }
            isWanted.signal()
        }

        func end() { isWanted.signal() }
    }

    /// The place of the worker that has nothing to do.
    private final class Idle: Sendable {
        private let worker = Mutex<Worker?>(nil)

        func take() -> Worker? { worker.withLock { $0.take() } }

        func put(_ other: Worker) {
            let isTaken = worker.withLock { worker in
                defer { worker = worker ?? other }
                return worker != nil
            }
            if isTaken { other.end() }
        }

        /// Whether the worker was there.
        func remove(_ other: Worker) -> Bool {
            worker.withLock { worker in
                guard worker === other else { return false }
                worker = nil
                return true
            }
        }
    }

    private let idle = Idle()

    /// Whether this thread runs a hook for `runner`: it cannot wait for what waits for the hook.
    static func isCurrent(_ owner: ObjectIdentifier) -> Bool {
        plugin_host_hook_owner() == UInt(bitPattern: owner)
    }

    private final class Answer<Result: Sendable>: Sendable {
        let result = Mutex<Result?>(nil)
        let isThere = DispatchSemaphore(value: 0)
    }

    /// Runs `body` on another thread and waits for what it returns; nil when it has not ended in time.
    ///
    /// - Parameters:
    ///   - owner: Who waits, for ``isCurrent(_:)``.
    ///   - patience: For how long.
    /// - Throws: `outOfResources` when there is no thread to be had; then nothing runs.
    func run<Result: Sendable>(
        for owner: ObjectIdentifier, _ patience: Patience, _ body: @escaping @Sendable () -> Result
    ) throws(PluginError) -> Result? {
        let worker = if let idle = idle.take() { idle } else { try Worker(idle) }
        let answer = Answer<Result>()
        worker.begin {
            plugin_host_set_hook_owner(UInt(bitPattern: owner))
            let result = body()
            answer.result.withLock { $0 = result }
            answer.isThere.signal()
        }
        guard patience.wait(for: answer.isThere) else {
            worker.end()  // When it has ended after all.
            return nil
        }
        idle.put(worker)
        return answer.result.withLock { $0 }
    }
}
