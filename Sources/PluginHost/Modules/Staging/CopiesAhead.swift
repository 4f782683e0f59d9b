import Dispatch
import PluginABI
import PluginFile
import Synchronization

/// Copies the files of modules, on this thread and one other. The other thread copies files ahead while this one opens
/// those that have been copied; this one copies, too, as long as the file that it wants is not there. Files are taken in
/// order; some may be skipped. Used on one thread.
final class CopiesAhead {
    private struct Copied {
        let result: Result<Staging.Begun?, PluginError>
        /// What was at the path; `nil` if there was nothing.
        let identity: FileIdentity?
    }

    /// What both threads use.
    private final class Shared: Sendable {
        struct State {
            /// The first file that nobody copies yet.
            var next = 0
            /// The end of the files that may be copied.
            var end = 0
            var copies: [Int: Copied] = [:]
            /// The file that the other thread copies.
            var copying: Int?
            /// The file for whose copy this thread waits.
            var awaited: Int?
            /// Whether the other thread sleeps until it is woken.
            var isAsleep = false
            var isOver = false

            /// Returns the next file to copy.
            mutating func takeNext() -> Int? {
                guard next < end else { return nil }
                defer { next += 1 }
                return next
            }
        }

        let state = Mutex(State())
        let wake = DispatchSemaphore(value: 0)
        let isThere = DispatchSemaphore(value: 0)
        private let paths: [String]
        private let staging: Staging
        private let checkTrust: Bool
        private let profiler: Profiler

        init(_ paths: [String], _ staging: Staging, _ checkTrust: Bool, _ profiler: Profiler) {
            (self.paths, self.staging, self.checkTrust, self.profiler) = (paths, staging, checkTrust, profiler)
        }

        func copy(_ index: Int) -> Copied {
            let path = paths[index]
            return profiler.measure(.loading, path) {
                let identity = FileIdentity(path: path)
                do throws(PluginError) {
                    let begun = try staging.begin(path: path, checkTrust: checkTrust)
                    return Copied(result: .success(begun), identity: begun?.identity ?? identity)
                } catch {
                    return Copied(result: .failure(error), identity: identity)
                }
            }
        }

        /// Whether the file is no longer the one that was copied, or could not be copied.
        func hasChanged(_ index: Int, since copied: Copied) -> Bool {
            FileIdentity(path: paths[index]) != copied.identity
        }

        /// Copies files on the other thread, until the end.
        func serve() {
            while true {
                let (index, isOver) = state.withLock { state in
                    state.copying = state.takeNext()
                    state.isAsleep = state.copying == nil
                    return (state.copying, state.isOver)
                }
                if let index {
                    let copied = copy(index)
                    let isAwaited = state.withLock { state in
                        state.copies[index] = copied
                        state.copying = nil
                        defer { if state.awaited == index { state.awaited = nil } }
                        return state.awaited == index
                    }
                    if isAwaited { isThere.signal() }
                } else if isOver {
                    return
                } else {
                    wake.wait()
                }
            }
        }
    }

    /// How many files after the one that is wanted may have been copied.
    private static let ahead = 8

    private let count: Int
    private let staging: Staging
    private let shared: Shared

    /// - Parameter profiler: Measures how long each copy takes.
    init(_ paths: [String], _ staging: Staging, checkTrust: Bool, _ profiler: Profiler) {
        (count, self.staging) = (paths.count, staging)
        let shared = Shared(paths, staging, checkTrust, profiler)
        self.shared = shared
        // Without another thread, this one makes all copies.
        if paths.count > 1 { _ = DetachedThread.tryStart("pluginhost.copy", shared.serve) }
    }

    /// Waits until a file has been copied.
    func prepare(_ index: Int) {
        permit(min(index + 1 + Self.ahead, count))
        while true {
            let (isThere, next) = shared.state.withLock { state -> (Bool, Int?) in
                guard state.copies[index] == nil else { return (true, nil) }
                let next = state.takeNext()
                if next == nil { state.awaited = index }
                return (false, next)
            }
            if isThere { return }
            if let next {
                let copied = shared.copy(next)
                shared.state.withLock { $0.copies[next] = copied }
            } else {
                shared.isThere.wait()
            }
        }
    }

    /// Returns the copy of a file. Each must be taken at most once. A file that has changed since it was copied, or could
    /// not be copied, is copied again.
    ///
    /// - Throws: The errors of ``Staging/begin(path:checkTrust:)``.
    func take(_ index: Int) throws(PluginError) -> Staging.Begun? {
        prepare(index)
        let copied = shared.state.withLock { $0.copies.removeValue(forKey: index)! }
        guard shared.hasChanged(index, since: copied) else { return try copied.result.get() }
        if case .success(let begun?) = copied.result { staging.discard(begun) }
        return try shared.copy(index).result.get()
    }

    /// Permits copies of the files before `end`. The other thread is woken if it has a few to copy, or the last ones.
    private func permit(_ end: Int) {
        let wakes = shared.state.withLock { state in
            state.end = max(state.end, end)
            let left = state.end - state.next
            guard state.isAsleep, left > (state.end == count ? 0 : Self.ahead / 2) else { return false }
            state.isAsleep = false
            return true
        }
        if wakes { shared.wake.signal() }
    }

    /// Ends the other thread, and removes the copies that were not taken.
    func end() {
        let (wakes, waits) = shared.state.withLock { state in
            (state.end, state.isOver, state.awaited) = (state.next, true, state.copying)
            return (state.isAsleep, state.copying != nil)
        }
        if wakes { shared.wake.signal() }
        if waits { shared.isThere.wait() }
        let rest = shared.state.withLock { state in
            defer { state.copies = [:] }
            return state.copies.values
        }
        for case .success(let begun?) in rest.map(\.result) { staging.discard(begun) }
    }
}
