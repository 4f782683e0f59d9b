import Dispatch
import Foundation
import Synchronization
import Testing

@testable import PluginHost
@testable import TestSupport

@Suite(.timeLimit(.minutes(10))) struct SerialThreadTests {
    private final class Notes: Sendable {
        let values = Mutex<[Int]>([])
        func add(_ value: Int) { values.withLock { $0.append(value) } }
        var all: [Int] { values.withLock { $0 } }
    }

    /// The number of threads of this process with a name.
    private func threads(named name: String) -> Int {
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
        return tasks.count { task in
            (try? String(contentsOfFile: "/proc/self/task/\(task)/comm", encoding: .utf8)) == name + "\n"
        }
    }

    private func wait(until isTrue: () -> Bool) -> Bool {
        for _ in 0..<600 where !isTrue() { usleep(100_000) }
        return isTrue()
    }

    @Test func `Work runs in order, and synchronous work on the thread of its caller`() {
        let thread = SerialThread("test.order")
        let notes = Notes()
        for number in 0..<100 {
            thread.async { notes.add(number) }
            if number % 10 == 9 {
                let caller = pthread_self()
                let isSame = thread.sync { pthread_self() == caller && thread.isCurrent }
                #expect(isSame && notes.all == Array(0...number))
            }
        }
        #expect(!thread.isCurrent)
    }

    @Test func `Many threads use the queue one at a time`() {
        let thread = SerialThread("test.turns")
        nonisolated(unsafe) var sum = 0  // Guarded by the queue, as this test checks.
        DispatchQueue.concurrentPerform(iterations: 8) { _ in
            for number in 0..<500 {
                if number % 2 == 0 { thread.sync { sum += 1 } } else { thread.async { sum += 1 } }
            }
        }
        #expect(thread.sync { sum } == 4000)
    }

    @Test func `The thread lives while it is retained, and ends after its work when it is released`() {
        let thread = SerialThread("test.lifetime")
        thread.retainThread()
        #expect(wait { threads(named: "test.lifetime") == 1 })
        thread.releaseThread()
        #expect(wait { threads(named: "test.lifetime") == 0 })
        let done = DispatchSemaphore(value: 0)
        thread.async(after: .milliseconds(20)) { done.signal() }
        #expect(done.wait(timeout: .now() + 60) == .success)
        #expect(wait { threads(named: "test.lifetime") == 0 })
    }

    @Test func `Delayed work runs in the order of its times, unless it is cancelled`() {
        let thread = SerialThread("test.delays")
        let notes = Notes()
        let done = DispatchSemaphore(value: 0)
        let never = thread.async(after: .seconds(Int64.max)) { notes.add(-2) }
        thread.async(after: .milliseconds(60)) { done.signal() }
        thread.async(after: .milliseconds(30)) { notes.add(2) }
        let cancelled = thread.async(after: .milliseconds(20)) { notes.add(-1) }
        thread.async(after: .milliseconds(1)) { notes.add(1) }
        thread.cancel(cancelled)
        #expect(done.wait(timeout: .now() + 60) == .success)
        #expect(notes.all == [1, 2])
        thread.cancel(never)
    }

    @Test func `A readable descriptor is reported until it is no longer watched`() {
        let thread = SerialThread("test.descriptor")
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        let (reading, writing) = (ends[0], ends[1])
        let told = DispatchSemaphore(value: 0)
        let code = thread.watch(reading) {
            var byte: UInt8 = 0
            if read(reading, &byte, 1) == 1 { told.signal() }
        }
        #expect(code == 0)
        var byte: UInt8 = 1
        for _ in 0..<3 {
            write(writing, &byte, 1)
            #expect(told.wait(timeout: .now() + 60) == .success)
        }
        thread.unwatch()
        #expect(wait { threads(named: "test.descriptor") == 0 })
        close(reading)
        close(writing)
    }

    @Test func `Ending a watch wakes the thread, even when it was just about to wait`() {
        let thread = SerialThread("test.unwatch")
        thread.retainThread()
        defer { thread.releaseThread() }
        let done = DispatchSemaphore(value: 0)
        for _ in 0..<3000 {
            var ends: [Int32] = [-1, -1]
            #expect(pipe(&ends) == 0 && thread.watch(ends[0]) {} == 0)
            thread.unwatch()
            // Files that are never readable, with the descriptor numbers of closed files.
            let others = (0..<4).map { _ in dup(ends[0]) }
            defer { for descriptor in ends + others { close(descriptor) } }
            thread.async { done.signal() }
            guard done.wait(timeout: .now() + 60) == .success else {
                Issue.record("The thread waits for a file that it does not watch.")
                return
            }
        }
    }

    @Test func `A pool runs as much work at a time as its limit allows, and then the rest`() {
        let pool = ThreadPool("test.pool", limit: 4)
        let (begun, gate) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        for _ in 0..<10 {
            pool.run {
                begun.signal()
                gate.wait()
            }
        }
        for _ in 0..<4 { begun.wait() }
        #expect(begun.wait(timeout: .now() + .milliseconds(50)) == .timedOut)
        for _ in 0..<10 { gate.signal() }
        for _ in 0..<6 { #expect(begun.wait(timeout: .now() + 60) == .success) }
        #expect(wait { threads(named: "test.pool") == 0 })
    }

    @Test func `A host that was shut down keeps no threads`() throws {
        let folder = try TemporaryFolder()
        var configuration = PluginHost.Configuration(folders: [try folder.folder("plugins")])
        configuration.stateFolder = folder.path
        configuration.stagingFolder = folder.path
        let host = PluginHost(configuration)
        try host.start()
        let (queue, watcher) = (host.lifecycle.queue, host.lifecycle.watcher)
        #expect(queue.hasThread && watcher?.hasThread == true)
        host.shutdown()
        #expect(wait { !queue.hasThread && watcher?.hasThread == false })
    }
}
