import Dispatch
import PluginABI
import PluginFile
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
        private let profiler: Profiler

        init(_ paths: [String], _ staging: Staging, _ checkTrust: Bool, _ profiler: Profiler) {
            (self.paths, self.staging, self.checkTrust, self.profiler) = (paths, staging, checkTrust, profiler)
        }

        /// Copies files until there are no more that may be copied.
        func copy() {
            while let index = next() {
                let copied = copy(index)
                state.withLock { $0.copies[index] = copied }
            }
        }

        func copy(_ index: Int) -> Copied {
            profiler.measure(.loading, paths[index]) {
                do throws(PluginError) {
                    return .success(try staging.begin(path: paths[index], checkTrust: checkTrust))
                } catch {
                    return .failure(error)
                }
            }
        }

        /// Whether the file is no longer the one that was copied.
        func hasChanged(_ index: Int, since begun: Staging.Begun) -> Bool {
            FileIdentity(path: paths[index]) != begun.identity
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

    /// The number of files in a batch. Twice as many may have been copied and not taken.
    private static let batch = 8

    private let count: Int
    private let staging: Staging
    private let shared: Shared
    private let hasThread: Bool
    /// The end of the batches that have been copied.
    private var copied = 0
    /// Whether the other thread has been told to copy.
    private var isCopying = false

    /// - Parameter profiler: Measures how long each copy takes.
    init(_ paths: [String], _ staging: Staging, checkTrust: Bool, _ profiler: Profiler) {
        (count, self.staging) = (paths.count, staging)
        let shared = Shared(paths, staging, checkTrust, profiler)
        self.shared = shared
        hasThread = paths.count > 1 && DetachedThread.tryStart("pluginhost.copy", shared.serve) == 0
    }

    /// Waits until a file has been copied.
    func prepare(_ index: Int) {
        while copied <= index { copyBatch() }
    }

    /// Returns the copy of a file. Each must be taken at most once. A file that has changed since it was copied is
    /// copied again.
    ///
    /// - Throws: The errors of ``Staging/begin(path:checkTrust:)``.
    func take(_ index: Int) throws(PluginError) -> Staging.Begun? {
        prepare(index)
        let copied = shared.state.withLock { $0.copies.removeValue(forKey: index)! }
        guard let begun = try copied.get(), shared.hasChanged(index, since: begun) else { return try copied.get() }
        staging.discard(begun)
        return try shared.copy(index).get()
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
