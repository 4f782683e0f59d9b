import Testing

@testable import PluginHost

/// Kept versions and the journal contain digests, which later hosts read.
struct FileDigestTests {
    private static let known: [(count: Int, digest: UInt64)] = [
        (0, 0xd8dc_1a31_8112_eb29), (7, 0xe489_6491_8ec8_34ee), (8, 0x28c5_f5c8_31bf_a831),
        (63, 0x063b_313b_1596_0aba), (64, 0x54d6_c4a5_92db_f285), (200, 0xc53c_7d83_e225_a26a),
    ]

    @Test(arguments: known) func `The digest of given bytes never changes`(count: Int, expected: UInt64) {
        var digest = FileDigest(size: count)
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ 3) }.withUnsafeBytes { digest.mix($0) }
        digest.mix(UInt64(count))
        #expect(digest.value == expected)
    }
}
