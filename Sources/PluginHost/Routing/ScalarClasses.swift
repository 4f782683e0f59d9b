/// Scalars by which positions of an automaton take them: those that nothing tells apart are one class.
struct ScalarClasses: Sendable {
    /// Where the mask of each ASCII character begins.
    private var ascii = [Int32](repeating: 0, count: 128)
    /// Where the others change from one class to the next, and where the masks begin from there on.
    private var bounds: [UInt32] = [0]
    private var places: [Int32] = [0]
    /// Of each class, the positions that take it.
    private var masks: [UInt64] = [0]

    init() {}

    /// - Parameters:
    ///   - sets: What each position takes.
    ///   - words: How many words a mask has.
    init(_ sets: [ScalarSet], words: Int) {
        var takers: [ScalarSet: [Int]] = [:]
        for (position, set) in sets.enumerated() { takers[set, default: []].append(position) }
        // At each bound of a set its positions begin or cease to be in the mask.
        var changes: [(scalar: UInt32, takers: Int)] = []
        var bits: [UInt64] = []
        for (set, positions) in takers {
            let start = bits.count
            bits += [UInt64](repeating: 0, count: words)
            for position in positions { bits[start + position / 64] |= 1 << UInt64(position % 64) }
            for range in set.ranges {
                changes.append((range.lowerBound, start))
                changes.append((range.upperBound + 1, start))
            }
        }
        changes.sort { $0.scalar < $1.scalar }
        var mask = [UInt64](repeating: 0, count: words)
        var known: [[UInt64]: Int32] = [mask: 0]
        masks = mask
        var index = 0
        while index < changes.count {
            let scalar = changes[index].scalar
            while index < changes.count, changes[index].scalar == scalar {
                let start = changes[index].takers
                for word in 0..<words { mask[word] ^= bits[start + word] }
                index += 1
            }
            let place = known[mask] ?? Int32(masks.count)
            if known.updateValue(place, forKey: mask) == nil { masks += mask }
            if bounds[bounds.count - 1] == scalar {
                places[places.count - 1] = place
            } else {
                bounds.append(scalar)
                places.append(place)
            }
        }
        for scalar in 0..<128 { ascii[scalar] = search(UInt32(scalar)) }
    }

    private func search(_ scalar: UInt32) -> Int32 {
        Masks.search(scalar, bounds.count, { bounds[$0] }, { places[$0] })
    }

    /// What finding the class of a scalar may take, for each byte of a URL: one that is searched for, since it is not ASCII,
    /// has two bytes at least.
    var steps: Int { Int.bitWidth - bounds.count.leadingZeroBitCount }

    struct Masks {
        let start: UnsafePointer<UInt64>
        fileprivate let ascii: UnsafePointer<Int32>
        fileprivate let bounds: UnsafeBufferPointer<UInt32>
        fileprivate let places: UnsafePointer<Int32>

        /// Where the mask of a scalar begins.
        @inline(__always)
        func place(of scalar: UInt32) -> Int {
            if scalar < 128 { return Int(ascii[Int(scalar)]) }
            return Int(Self.search(scalar, bounds.count, { bounds[$0] }, { places[$0] }))
        }

        /// The last bound that is not above the scalar: the first one is 0.
        @inline(__always)
        fileprivate static func search(
            _ scalar: UInt32, _ count: Int, _ bound: (Int) -> UInt32, _ place: (Int) -> Int32
        ) -> Int32 {
            var (low, high) = (0, count)
            while high - low > 1 {
                let middle = (low + high) / 2
                if bound(middle) <= scalar { low = middle } else { high = middle }
            }
            return place(low)
        }
    }

    /// Lends the masks.
    @inline(__always)
    func withMasks<Result>(_ body: (Masks) -> Result) -> Result {
        masks.withUnsafeBufferPointer { masks in
            ascii.withUnsafeBufferPointer { ascii in
                bounds.withUnsafeBufferPointer { bounds in
                    places.withUnsafeBufferPointer { places in
                        body(
                            Masks(
                                start: masks.baseAddress!, ascii: ascii.baseAddress!, bounds: bounds,
                                places: places.baseAddress!))
                    }
                }
            }
        }
    }
}
