import PluginABI
import Synchronization

/// One library being opened by the dynamic linker.
///
/// While constructors run, the linker keeps a process-wide lock: no thread can open another library, look up a symbol
/// (`dlsym`, `dladdr`) or end the process with `exit`. Everything else works: calls, new threads, first accesses to
/// thread-local values, C++ exceptions, `fork`, `_exit`. An opening that takes too long is therefore left to its
/// thread, and no other library is opened until it has returned.
final class LibraryOpening: Sendable {
    static let consequence =
        " Until it returns, no other library can be opened, and the process cannot end with exit. "
        + "An isolated module ('--isolate') would not delay the others."

    private static let overdue = Mutex<[ObjectIdentifier: LibraryOpening]>([:])
    private static let whenFree = Mutex<[@Sendable () -> Void]>([])

    private let file: String
    private let start = ContinuousClock.now
    private let hasEnded = Mutex(false)

    init(_ file: String) { self.file = file }

    /// Records that the opening took too long. It blocks other openings until it has ended.
    func isOverdue() {
        hasEnded.withLock { hasEnded in
            if !hasEnded { Self.overdue.withLock { $0[ObjectIdentifier(self)] = self } }
        }
    }

    func end() {
        hasEnded.withLock { hasEnded in
            hasEnded = true
            _ = Self.overdue.withLock { $0.removeValue(forKey: ObjectIdentifier(self)) }
        }
        guard Self.overdue.withLock({ $0.isEmpty }) else { return }
        let waiting = Self.whenFree.withLock { waiting in
            defer { waiting = [] }
            return waiting
        }
        for body in waiting { body() }
    }

    /// Checks that no overdue opening blocks the dynamic linker.
    ///
    /// - Parameter retry: Called once when libraries can be opened again, if they cannot be opened now; `nil` if the
    ///   file is not tried again.
    /// - Throws: `openFailed` if an overdue opening has not returned yet.
    static func requireFree(for file: String, _ retry: (@Sendable () -> Void)?) throws(PluginError) {
        guard let present = overdue.withLock({ $0.values.first }) else { return }
        if let retry { whenFree.withLock { $0.append(retry) } }
        // The opening may have ended before `retry` was added.
        guard overdue.withLock({ !$0.isEmpty }) else { return }
        let seconds = Int((ContinuousClock.now - present.start) / .seconds(1))
        throw PluginError(
            .openFailed,
            "\(file) cannot be opened now: a constructor of \(present.file) has been running for \(seconds) s, and the "
                + "dynamic linker opens no other library until it returns."
                + (retry == nil ? " Try again then." : " The file will be opened then."))
    }
}
