import Synchronization

/// The instance of the target `Counter`, shared by its calls on all threads.
final class Counter: Sendable {
    private let total = Mutex(0)

    func add(_ n: Int) -> Int {
        total.withLock {
            $0 &+= n
            return $0
        }
    }
}

/// The result of a search. Its holder reads the names one by one.
final class Cursor: Sendable {
    private let remaining: Mutex<ArraySlice<String>>

    init(_ names: [String]) { remaining = Mutex(names[...]) }

    func next() -> String? { remaining.withLock { $0.popFirst() } }
}
