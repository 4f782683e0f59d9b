import Testing

@testable import PluginHost

/// Kept versions and the journal contain digests, which later hosts read.
struct FileDigestTests {
    private static let known: [(count: Int, digest: UInt64)] = [
        (0, 0x19cb_5ee0_cfb1_e904), (7, 0x2b1c_53d2_1630_7cf7), (8, 0x33c4_2d87_87e8_2f75),
        (31, 0x5469_4b8a_e063_2235), (32, 0x8d5b_16e7_e3ca_fcd7), (100, 0x7970_c9a3_6c89_4b75),
    ]

    @Test(arguments: known) func `The digest of given bytes never changes`(count: Int, expected: UInt64) {
        var digest = FileDigest(size: count)
        (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ 3) }.withUnsafeBytes { digest.mix($0) }
        digest.mix(UInt64(count))
        #expect(digest.value == expected)
    }
}
