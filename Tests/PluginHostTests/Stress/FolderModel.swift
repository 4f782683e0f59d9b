import Synchronization

/// The versions of each module that may answer: those that were in the folder at some time between the beginning and
/// the end of a call.
final class FolderModel: Sendable {
    /// The number of a version, or 0 for none.
    typealias Number = Int

    private struct Interval {
        let number: Number
        let begin: Int
        var end = Int.max
    }

    private let places: Mutex<[[Interval]]>
    private let clock = Atomic<Int>(1)

    init(places count: Int) { places = Mutex((0..<count).map { _ in [Interval(number: 0, begin: 0)] }) }

    /// The present time, for ``isAllowed(_:of:since:)``.
    var now: Int { clock.load(ordering: .sequentiallyConsistent) }

    /// States that a version may answer from now on; called before it is put into the folder.
    func allow(_ number: Number, of place: Int) {
        places.withLock { $0[place].append(Interval(number: number, begin: now)) }
    }

    /// States that only one version answers from now on; called when this was observed.
    func allowOnly(_ number: Number, of place: Int) {
        places.withLock { places in
            let now = clock.add(1, ordering: .sequentiallyConsistent).newValue
            for index in places[place].indices where places[place][index].number != number {
                places[place][index].end = min(places[place][index].end, now)
            }
            // For calls that run longer than this, any answer is accepted.
            places[place].removeAll { $0.end < now - 5000 }
        }
    }

    func isAllowed(_ number: Number, of place: Int, since begin: Int) -> Bool {
        places.withLock { places in places[place].contains { $0.number == number && $0.end > begin } }
    }

    /// The versions that may answer now, for messages.
    func allowed(_ place: Int) -> [Number] {
        places.withLock { places in places[place].filter { $0.end == .max }.map(\.number) }
    }
}
