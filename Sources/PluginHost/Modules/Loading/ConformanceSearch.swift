import Synchronization

/// Makes the Swift runtime read the protocol conformances of a library while the library is being opened.
///
/// The runtime reads them when it next searches for a conformance, at any place in the host. If they are damaged, the
/// host dies there, and the file that caused it cannot be named. A search takes longer the more libraries are open, and
/// each library that is opened causes one, so only the first libraries of a process are read in this way.
enum ConformanceSearch {
    private struct Subject {}
    private struct OtherSubject {}

    /// How many libraries are read while they are opened.
    private static let limit = 32
    private static let count = Atomic(0)
    /// Values whose types conform to nothing. The compiler does not know which one is used, and so cannot leave out the
    /// search.
    private static let subjects: [any Sendable] = [Subject(), OtherSubject()]

    /// Searches the conformances of all open libraries, including the last one that was opened.
    static func run() {
        let number = count.add(1, ordering: .relaxed).newValue
        guard number <= limit else { return }
        // The result is used, since the compiler leaves out a search without a use.
        precondition(!(subjects[number & 1] is any CustomLeafReflectable), "Subjects conform to nothing.")
    }
}
