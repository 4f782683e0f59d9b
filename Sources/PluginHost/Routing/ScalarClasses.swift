/// The classes of scalars in an automaton. Scalars that are consumed by the same positions are in one class.
struct ScalarClasses: Sendable {
    /// The offset of the mask of each ASCII character.
    private var ascii = [Int32](repeating: 0, count: 128)
    /// The scalars at which a new class begins.
    private var bounds: [UInt32] = [0]
    /// The offset of the mask of each class in `bounds`.
    private var offsets: [Int32] = [0]
    /// The positions that consume each class.
    private var masks: [UInt64] = [0]

    init() {}

    /// - Parameters:
    ///   - sets: The scalars that each position consumes.
    ///   - words: The number of words of a mask.
    init(_ sets: [ScalarSet], words: Int) {
        var takers: [ScalarSet: [Int]] = [:]
        for (position, set) in sets.enumerated() { takers[set, default: []].append(position) }
        // At each bound of a set, its positions enter or leave the mask.
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
            let offset = known[mask] ?? Int32(masks.count)
            if known.updateValue(offset, forKey: mask) == nil { masks += mask }
            if bounds[bounds.count - 1] == scalar {
                offsets[offsets.count - 1] = offset
            } else {
                bounds.append(scalar)
                offsets.append(offset)
            }
        }
        for scalar in 0..<128 { ascii[scalar] = search(UInt32(scalar)) }
    }

    private func search(_ scalar: UInt32) -> Int32 {
        Masks.search(scalar, bounds.count, { bounds[$0] }, { offsets[$0] })
    }

    /// The most steps, for each byte of a URL, that finding the class of a scalar takes. A scalar that is searched for
    /// is not ASCII and therefore has at least two bytes.
    var steps: Int { Int.bitWidth - bounds.count.leadingZeroBitCount }

    struct Masks {
        let start: UnsafePointer<UInt64>
        fileprivate let ascii: UnsafePointer<Int32>
        fileprivate let bounds: UnsafeBufferPointer<UInt32>
        fileprivate let offsets: UnsafePointer<Int32>

        /// Returns the offset of the mask of a scalar.
        @inline(__always)
        func offset(of scalar: UInt32) -> Int {
            if scalar < 128 { return Int(ascii[Int(scalar)]) }
            return Int(Self.search(scalar, bounds.count, { bounds[$0] }, { offsets[$0] }))
        }

        /// Returns the offset of the mask for the last bound that is not above the scalar. The first bound is 0.
        @inline(__always)
        fileprivate static func search(
            _ scalar: UInt32, _ count: Int, _ bound: (Int) -> UInt32, _ offset: (Int) -> Int32
        ) -> Int32 {
            var (low, high) = (0, count)
            while high - low > 1 {
                let middle = (low + high) / 2
                if bound(middle) <= scalar { low = middle } else { high = middle }
            }
            return offset(low)
        }
    }

    /// Lends the masks to `body`.
    @inline(__always)
    func withMasks<Result>(_ body: (Masks) -> Result) -> Result {
        masks.withUnsafeBufferPointer { masks in
            ascii.withUnsafeBufferPointer { ascii in
                bounds.withUnsafeBufferPointer { bounds in
                    offsets.withUnsafeBufferPointer { offsets in
                        body(
                            Masks(
                                start: masks.baseAddress!, ascii: ascii.baseAddress!, bounds: bounds,
                                offsets: offsets.baseAddress!))
                    }
                }
            }
        }
    }
}
