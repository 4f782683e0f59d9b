/// The generator SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators").
struct SplitMix: RandomNumberGenerator {
    private var state: UInt64

    /// The generator of one round: rounds are independent, so that a single one can be repeated.
    init(seed: UInt64, attack: String, round: Int) {
        state = seed
        for byte in attack.utf8 { state = (state ^ UInt64(byte)) &* 0x100_0000_01B3 }
        // States that differ by a multiple of the increment would give one sequence, shifted: hence the mixing.
        state = next() ^ UInt64(round)
        state = next()
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var bits = state
        bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
        bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
        return bits ^ (bits >> 31)
    }

    mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(max(bound, 1))) }

    /// True with a probability of one in `chances`.
    mutating func oneIn(_ chances: Int) -> Bool { below(chances) == 0 }

    mutating func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }
}
