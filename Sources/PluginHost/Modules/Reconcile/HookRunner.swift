import CPluginHost
import Dispatch
import PluginABI
import Synchronization

/// A runner for module code with a timeout, one function at a time.
///
/// Code is never interrupted: a function that does not return in time keeps its thread, and the next one runs on
/// another thread.
final class HookRunner: Sendable {
    /// A thread and its next function. It ends if it is woken without a function.
    fileprivate final class Worker: Sendable {
        let work = Mutex<(@Sendable () -> Void)?>(nil)
        let isWanted = DispatchSemaphore(value: 0)
        /// Used by the worker's thread.
        private let look = ShortLook()

        /// - Throws: `outOfResources`.
        init(_ idle: Idle) throws(PluginError) {
            try DetachedThread.start("pluginhost.hook") { [self] in
                while true {
                    // An idle thread ends after a second.
                    if !look.sees(isWanted), isWanted.wait(timeout: .now() + 1) == .timedOut {
                        if idle.remove(self) { return }
                        isWanted.wait()  // The worker was just taken for a new function.
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

    /// The slot for an idle worker.
    fileprivate final class Idle: Sendable {
        private let worker = Mutex<Worker?>(nil)

        func take() -> Worker? { worker.withLock { $0.take() } }

        func put(_ other: Worker) {
            let isTaken = worker.withLock { worker in
                defer { worker = worker ?? other }
                return worker != nil
            }
            if isTaken { other.end() }
        }

        /// Removes a worker. Returns whether it was stored here.
        func remove(_ other: Worker) -> Bool {
            worker.withLock { worker in
                guard worker === other else { return false }
                worker = nil
                return true
            }
        }
    }

    private let idle = Idle()
    private let waits: ChangeWaits?
    private let look = ShortLook()

    /// - Parameter waits: The waits of the thread that changes modules, which may be the one that waits for code.
    init(_ waits: ChangeWaits? = nil) { self.waits = waits }

    /// Returns whether this thread runs a hook for `owner`, so that it must not wait for work that waits for the hook.
    static func isCurrent(_ owner: ObjectIdentifier) -> Bool {
        plugin_host_hook_owner() == UInt(bitPattern: owner)
    }

    fileprivate final class Answer<Result: Sendable>: Sendable {
        let result = Mutex<Result?>(nil)
        let isThere = DispatchSemaphore(value: 0)
    }

    /// A function that runs on another thread. It must be waited for.
    struct Running<Result: Sendable> {
        fileprivate let worker: Worker
        fileprivate let answer: Answer<Result>
    }

    /// Runs `body` on another thread, waits for it and returns its result, or `nil` if it does not return in time.
    ///
    /// - Parameters:
    ///   - owner: The object that waits, as ``isCurrent(_:)`` identifies it.
    ///   - patience: The timeout, and what is logged about the wait.
    /// - Throws: `outOfResources` if no thread can be started; `body` then does not run.
    func run<Result: Sendable>(
        for owner: ObjectIdentifier, _ patience: Patience, _ body: @escaping @Sendable () -> Result
    ) throws(PluginError) -> Result? {
        wait(for: try begin(for: owner, body), patience)
    }

    /// Begins to run `body` on another thread.
    ///
    /// - Throws: `outOfResources` if no thread can be started; `body` then does not run.
    func begin<Result: Sendable>(
        for owner: ObjectIdentifier, _ body: @escaping @Sendable () -> Result
    ) throws(PluginError) -> Running<Result> {
        let worker = if let idle = idle.take() { idle } else { try Worker(idle) }
        let answer = Answer<Result>()
        worker.begin {
            plugin_host_set_hook_owner(UInt(bitPattern: owner))
            let result = body()
            answer.result.withLock { $0 = result }
            answer.isThere.signal()
        }
        return Running(worker: worker, answer: answer)
    }

    /// Waits for a function and returns its result, or `nil` if it does not return in time.
    func wait<Result: Sendable>(for running: Running<Result>, _ patience: Patience) -> Result? {
        let answer = running.answer
        let isThere =
            look.sees(answer.isThere)
            || patience.wait { deadline in
                guard let waits else { return answer.isThere.wait(timeout: deadline) == .success }
                return waits.wait(for: answer.isThere, until: deadline) { answer.result.withLock { $0 != nil } }
            }
        guard isThere else {
            running.worker.end()  // The thread ends when the function returns after all.
            return nil
        }
        idle.put(running.worker)
        return answer.result.withLock { $0 }
    }
}
