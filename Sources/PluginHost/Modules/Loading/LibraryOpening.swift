import PluginABI
import Synchronization

/// The opening of one library by the dynamic linker.
///
/// The linker holds a lock of the whole process while constructors run: meanwhile no thread can open another library, look
/// up a symbol (`dlsym`, `dladdr`) or end the process by `exit`. Everything else goes on: calls, new threads, first uses of
/// thread-local values, errors of C++, `fork`, `_exit`. So an opening that takes too long is left to its thread, and further
/// ones are refused until it has returned.
final class LibraryOpening: Sendable {
    static let consequence = " No other library can be opened, and no program can end by exit, until it returns."

    private static let overdue = Mutex<[ObjectIdentifier: LibraryOpening]>([:])
    private static let whenFree = Mutex<[@Sendable () -> Void]>([])

    private let file: String
    private let start = ContinuousClock.now
    private let hasEnded = Mutex(false)

    private init(_ file: String) { self.file = file }

    static func begin(_ file: String) -> LibraryOpening { LibraryOpening(file) }

    /// Notes that nobody waits for it any more. It stands in the way of others until it has ended.
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

    /// - Parameter retry: Called once when libraries can be opened again, if they cannot now.
    /// - Throws: `openFailed` while an opening goes on that took too long.
    static func requireFree(for file: String, _ retry: @escaping @Sendable () -> Void) throws(PluginError) {
        guard let present = overdue.withLock({ $0.values.first }) else { return }
        whenFree.withLock { $0.append(retry) }
        // It may have ended before that.
        guard overdue.withLock({ !$0.isEmpty }) else { return }
        let seconds = Int((ContinuousClock.now - present.start) / .seconds(1))
        throw PluginError(
            .openFailed,
            "\(file) cannot be opened now: a constructor of \(present.file) has been running for \(seconds) s, and the "
                + "dynamic linker opens nothing else until it returns. The file is opened then.")
    }
}
