/// The difference between two lists of objects.
struct ListChange<Element: AnyObject> {
    /// The elements that are only in the first list, in its order.
    let gone: [Element]
    /// The elements that are only in the second list, in its order.
    let new: [Element]
    /// Whether those that are in both lists have the same order in both.
    let keepsOrder: Bool

    /// Takes time proportional to the length of the lists, but little for the elements that they share at the beginning
    /// and the end.
    init(from before: [Element], to after: [Element]) {
        let shorter = min(before.count, after.count)
        var (start, end) = (0, 0)
        while start < shorter, before[start] === after[start] { start += 1 }
        while end < shorter - start, before[before.count - 1 - end] === after[after.count - 1 - end] { end += 1 }
        let (old, new) = (before[start..<before.count - end], after[start..<after.count - end])
        guard !old.isEmpty, !new.isEmpty else {
            (gone, self.new, keepsOrder) = (Array(old), Array(new), true)
            return
        }
        let (past, present) = (Set(old.lazy.map(ObjectIdentifier.init)), Set(new.lazy.map(ObjectIdentifier.init)))
        gone = old.filter { !present.contains(ObjectIdentifier($0)) }
        self.new = new.filter { !past.contains(ObjectIdentifier($0)) }
        keepsOrder = gone.count == old.count && self.new.count == new.count
    }
}

/// The difference between two lists of modules.
typealias ModuleChange = ListChange<Generation>

extension ListChange where Element == Generation {
    /// Whether something that is made from one kind of part of the modules, such as their services, stays the same,
    /// including its order.
    ///
    /// - Parameter lack: Returns whether a generation has no such part.
    func leaves(_ lack: (Generation) -> Bool) -> Bool { keepsOrder && gone.allSatisfy(lack) && new.allSatisfy(lack) }

    /// Whether the change concerns no more than an eighth of the generations.
    func isSmall(among generations: [Generation]) -> Bool { (gone.count + new.count) * 8 <= generations.count }

    /// The change in the number of addresses.
    var addressCount: Int {
        new.reduce(0) { $0 + $1.addresses.count } - gone.reduce(0) { $0 + $1.addresses.count }
    }
}
