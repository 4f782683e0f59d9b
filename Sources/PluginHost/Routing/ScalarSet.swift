/// A set of Unicode scalars, as sorted ranges that neither overlap nor touch.
struct ScalarSet: Hashable, Sendable {
    private(set) var ranges: [ClosedRange<UInt32>]

    /// - Parameter ranges: The ranges, in any order. They may overlap.
    init(_ ranges: [ClosedRange<UInt32>]) {
        var merged: [ClosedRange<UInt32>] = []
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let last = merged.last, range.lowerBound <= last.upperBound &+ 1 {
                merged[merged.count - 1] = last.lowerBound...max(last.upperBound, range.upperBound)
            } else {
                merged.append(range)
            }
        }
        self.ranges = merged
    }

    static func scalar(_ scalar: UInt32) -> ScalarSet { ScalarSet([scalar...scalar]) }

    /// All scalars, including escaped slashes.
    static let all = ScalarSet([0...0x1FFFFF])
    static let digits = ScalarSet([0x30...0x39])
    static let word = ScalarSet([0x30...0x39, 0x41...0x5A, 0x5F...0x5F, 0x61...0x7A])
    static let space = ScalarSet([
        0x09...0x0D, 0x20...0x20, 0xA0...0xA0, 0x1680...0x1680, 0x2000...0x200A, 0x2028...0x2029, 0x202F...0x202F,
        0x205F...0x205F, 0x3000...0x3000, 0xFEFF...0xFEFF,
    ])
    static let capitals = ScalarSet([0x41...0x5A])
    static let lineEnds = ScalarSet([0x0A...0x0A, 0x0D...0x0D, 0x2028...0x2029])

    var inverted: ScalarSet {
        var gaps: [ClosedRange<UInt32>] = []
        var next: UInt32 = 0
        for range in ranges {
            if range.lowerBound > next { gaps.append(next...(range.lowerBound - 1)) }
            next = range.upperBound + 1
        }
        if next <= 0x1FFFFF { gaps.append(next...0x1FFFFF) }
        return ScalarSet(gaps)
    }

    func union(_ other: ScalarSet) -> ScalarSet { ScalarSet(ranges + other.ranges) }

    func intersection(_ other: ScalarSet) -> ScalarSet { inverted.union(other.inverted).inverted }

    func subtracting(_ other: ScalarSet) -> ScalarSet { intersection(other.inverted) }

    func shifted(by distance: UInt32) -> ScalarSet {
        ScalarSet(ranges.map { $0.lowerBound + distance...$0.upperBound + distance })
    }

    /// Returns whether a scalar is in both sets, in time proportional to the total number of ranges.
    func intersects(_ other: ScalarSet) -> Bool {
        var (mine, others) = (0, 0)
        while mine < ranges.count, others < other.ranges.count {
            if ranges[mine].upperBound < other.ranges[others].lowerBound {
                mine += 1
            } else if other.ranges[others].upperBound < ranges[mine].lowerBound {
                others += 1
            } else {
                return true
            }
        }
        return false
    }

    /// Returns whether a scalar is in the set, in time proportional to the logarithm of the number of ranges.
    func contains(_ scalar: UInt32) -> Bool {
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].upperBound < scalar { low = middle + 1 } else { high = middle }
        }
        return low < ranges.count && ranges[low].lowerBound <= scalar
    }
}
