package import Dispatch
import Glibc
import Synchronization

/// Threads for code that may block, such as actions and callbacks: neither the threads that all tasks of the program
/// share, nor those of the connections. There is a thread for each piece of code that runs or waits, up to a limit. A
/// thread that has nothing to run for a while ends. If the system has no more threads, code runs later, on those of
/// Dispatch.
package final class ThreadPool: TaskExecutor {
    private struct State {
        var waiting: [(@Sendable () -> Void)?] = []
        var next = 0
        var idle = 0
        var threads = 0

        var count: Int { waiting.count - next }

        mutating func take() -> (@Sendable () -> Void)? {
            guard count > 0 else { return nil }
            defer {
                waiting[next] = nil
                next += 1
                if next == waiting.count || next >= 1024 && next * 2 >= waiting.count {
                    waiting.removeFirst(next)
                    next = 0
                }
            }
            return waiting[next]
        }
    }

    private let limit: Int
    private let idleTime: DispatchTimeInterval
    private let startThread: @Sendable (_ body: @escaping @Sendable () -> Void) -> Bool
    private let state = Mutex(State())
    private let arrived = DispatchSemaphore(value: 0)

    /// - Parameters:
    ///   - limit: The largest number of threads, 1 or more.
    ///   - idleTime: How long a thread waits for something to run until it ends.
    ///   - startThread: Runs a body on a new thread; returns false if the system has none.
    package init(
        limit: Int, idleTime: DispatchTimeInterval = .seconds(10),
        startThread: @escaping @Sendable (_ body: @escaping @Sendable () -> Void) -> Bool = ThreadPool.startThread
    ) {
        (self.limit, self.idleTime, self.startThread) = (max(1, limit), idleTime, startThread)
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        run { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }

    /// Runs a body on one of the threads.
    package func run(_ body: @escaping @Sendable () -> Void) {
        let needsThread = state.withLock { state in
            state.waiting.append(body)
            let isShort = state.count > state.idle && state.threads < limit
            if isShort { state.threads += 1 }
            return isShort
        }
        arrived.signal()
        guard needsThread, !startThread({ while self.runNext() {} }) else { return }
        state.withLock { $0.threads -= 1 }
        DispatchQueue.global().async { self.runWaiting() }
    }

    /// Waits for something to run, and runs it. Returns false if nothing arrives, so that the thread should end.
    private func runNext() -> Bool {
        state.withLock { $0.idle += 1 }
        let result = arrived.wait(timeout: .now() + idleTime)
        let (body, ends) = state.withLock { state in
            state.idle -= 1
            // What has arrived in the last moment is run; its signal then wakes a thread for nothing.
            let body = state.take()
            let ends = body == nil && result == .timedOut
            if ends { state.threads -= 1 }
            return (body, ends)
        }
        body?()
        return !ends
    }

    /// Runs what waits, in place of a thread that cannot be started.
    private func runWaiting() {
        while let body = state.withLock({ $0.take() }) { body() }
    }

    /// Starts a thread of the system. Returns false if there are no more.
    ///
    /// - Parameter body: What the thread runs.
    package static let startThread: @Sendable (_ body: @escaping @Sendable () -> Void) -> Bool = { body in
        final class Body {
            let run: @Sendable () -> Void
            init(_ run: @escaping @Sendable () -> Void) { self.run = run }
        }
        var thread = pthread_t()
        let data = Unmanaged.passRetained(Body(body))
        let status = pthread_create(
            &thread, nil,
            { data in
                Unmanaged<Body>.fromOpaque(data!).takeRetainedValue().run()
                return nil
            }, data.toOpaque())
        guard status == 0 else {
            data.release()
            return false
        }
        pthread_detach(thread)
        return true
    }
}
