import Dispatch
import GatewayThreads
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(10))) struct RequestThreadTests {
    /// Threads that count how many of them have been started.
    private final class Counted: Sendable {
        let started = Mutex(0)

        func threads(_ count: Int) -> RequestThreads {
            RequestThreads(count: count) { body in
                self.started.withLock { $0 += 1 }
                return ThreadPool.startThread(body)
            }
        }
    }

    @Test func `a task that is handed over runs on the same thread, and wakes no other`() async {
        let counted = Counted()
        let threads = counted.threads(4)
        await withTaskExecutorPreference(threads) {
            for _ in 0..<10 {
                let outcome = Outcome()
                threads.handOver {
                    _ = Task(executorPreference: threads) { threads.handOver { outcome.set() } }
                }
                await outcome.wait()
                #expect(threads.isCurrent)
            }
        }
        #expect(counted.started.withLock { $0 } == 1)
    }

    @Test func `a task continues although the one to which it has handed its thread hangs`() async throws {
        let (threads, go) = (RequestThreads(count: 1), DispatchSemaphore(value: 0))
        let (hangs, outcome) = (DispatchSemaphore(value: 0), Outcome())
        async let end = withTaskExecutorPreference(threads) {
            let hanging = threads.handOver {
                Task(executorPreference: threads) {
                    guard threads.enter() else { return }
                    hangs.signal()
                    go.waitInTask()
                    threads.leave()
                }
            }
            await outcome.wait()
            return hanging
        }
        #expect(try await onThread { hangs.wait(timeout: .now() + 60) } == .success)
        outcome.set()
        let hanging = await end
        go.signal()
        await hanging.value
    }

    @Test(arguments: [1, 2, 3]) func `one thread is always free of code that hangs`(count: Int) async throws {
        let (threads, go, hangs) = (
            RequestThreads(count: count), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
        )
        let hanging = (0..<count).map { _ in
            Task(executorPreference: threads) {
                let isEntered = threads.enter()
                hangs.signal()
                go.waitInTask()
                threads.leave()
                return isEntered
            }
        }
        #expect(
            try await onThread { (0..<count).allSatisfy { _ in hangs.wait(timeout: .now() + 60) == .success } })
        #expect(await Task(executorPreference: threads) { !threads.enter() }.value)
        for _ in hanging { go.signal() }
        for task in hanging { #expect(await task.value) }
        #expect(await Task(executorPreference: threads) { threads.enter() }.value)
    }

    @Test func `tasks that hand over to each other keep no others waiting`() async {
        let threads = RequestThreads(count: 1)
        let row = Task(executorPreference: threads) {
            while !Task.isCancelled {
                let outcome = Outcome()
                threads.handOver {
                    _ = Task(executorPreference: threads) { threads.handOver { outcome.set() } }
                }
                await outcome.wait()
            }
        }
        for _ in 0..<10 { await Task(executorPreference: threads) {}.value }
        row.cancel()
        await row.value
    }

    @Test func `without threads, tasks run nevertheless`() async {
        let threads = RequestThreads(count: 2) { _ in false }
        let results = await withTaskGroup(of: Int.self) { group in
            for number in 0..<20 { group.addTask(executorPreference: threads) { number } }
            return await group.reduce(into: Set<Int>()) { $0.insert($1) }
        }
        #expect(results.count == 20)
    }
}

extension DispatchSemaphore {
    /// Waits, as code that hangs does.
    fileprivate func waitInTask() { wait() }
}

/// Something that is awaited once.
private final class Outcome: Sendable {
    private let state = Mutex<(isSet: Bool, waiter: CheckedContinuation<Void, Never>?)>((false, nil))

    func set() {
        let waiter = state.withLock { state in
            state.isSet = true
            return state.waiter.take()
        }
        waiter?.resume()
    }

    func wait() async {
        await withCheckedContinuation { waiter in
            let isSet = state.withLock { state in
                if !state.isSet { state.waiter = waiter }
                return state.isSet
            }
            if isSet { waiter.resume() }
        }
    }
}
