import Dispatch
import PluginABI
import Synchronization

/// Copies the files of modules in batches, on this thread and one other. While this thread opens the files of a batch, the
/// other one copies those of the next. Files are taken in order; some may be skipped. Used on one thread.
final class CopiesAhead {
    private typealias Copied = Result<Staging.Begun?, PluginError>

    /// What both threads use.
    private final class Shared: Sendable {
        struct State {
            /// The first file that nobody copies yet.
            var next = 0
            /// The end of the files that may be copied.
            var end = 0
            var copies: [Int: Copied] = [:]
            var isOver = false
        }

        let state = Mutex(State())
        let wanted = DispatchSemaphore(value: 0)
        let finished = DispatchSemaphore(value: 0)
        private let paths: [String]
        private let staging: Staging
        private let checkTrust: Bool

        init(_ paths: [String], _ staging: Staging, _ checkTrust: Bool) {
            (self.paths, self.staging, self.checkTrust) = (paths, staging, checkTrust)
        }

        /// Copies files until there are no more that may be copied.
        func copy() {
            while let index = next() {
                let copied: Copied
                do throws(PluginError) {
                    copied = .success(try staging.begin(path: paths[index], checkTrust: checkTrust))
                } catch {
                    copied = .failure(error)
                }
                state.withLock { $0.copies[index] = copied }
            }
        }

        private func next() -> Int? {
            state.withLock { state in
                guard state.next < state.end else { return nil }
                defer { state.next += 1 }
                return state.next
            }
        }

        /// Copies what is wanted, until the end.
        func serve() {
            while true {
                wanted.wait()
                if state.withLock(\.isOver) { return }
                copy()
                finished.signal()
            }
        }
    }

    /// The number of files in a batch: twice as many may have been copied and not opened.
    private static let batch = 8

    private let count: Int
    private let staging: Staging
    private let shared: Shared
    private let hasThread: Bool
    /// The end of the batches that have been copied.
    private var copied = 0
    /// Whether the other thread has been told to copy.
    private var isCopying = false

    init(_ paths: [String], _ staging: Staging, checkTrust: Bool) {
        (count, self.staging) = (paths.count, staging)
        let shared = Shared(paths, staging, checkTrust)
        self.shared = shared
        hasThread = paths.count > 1 && DetachedThread.tryStart("pluginhost.copy", shared.serve) == 0
    }

    /// Returns the copy of a file. Each must be taken at most once.
    ///
    /// - Throws: The errors of ``Staging/begin(path:checkTrust:)``.
    func take(_ index: Int) throws(PluginError) -> Staging.Begun? {
        while copied <= index { copyBatch() }
        return try shared.state.withLock { $0.copies.removeValue(forKey: index)! }.get()
    }

    private func copyBatch() {
        if copied == 0 { wantNext() }
        shared.copy()
        join()
        copied = shared.state.withLock(\.end)
        wantNext()
    }

    /// Lets the other thread copy the next batch.
    private func wantNext() {
        let hasMore = shared.state.withLock { state in
            state.end = min(state.end + Self.batch, count)
            return state.next < state.end
        }
        guard hasThread, hasMore else { return }
        isCopying = true
        shared.wanted.signal()
    }

    /// Waits until the other thread has copied what it has begun with.
    private func join() {
        guard isCopying else { return }
        shared.finished.wait()
        isCopying = false
    }

    /// Ends the other thread, and removes the copies that were not taken.
    func end() {
        shared.state.withLock { $0.end = $0.next }
        join()
        if hasThread {
            shared.state.withLock { $0.isOver = true }
            shared.wanted.signal()
        }
        let rest = shared.state.withLock { state in
            defer { state.copies = [:] }
            return state.copies.values
        }
        for case .success(let begun?) in rest { staging.discard(begun) }
    }
}
