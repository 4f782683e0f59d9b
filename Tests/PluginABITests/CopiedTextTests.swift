import Testing

@testable import PluginABI

@Suite struct CopiedTextTests {
    /// Copies bytes that are followed by others, which do not belong to the text.
    private func copy(_ bytes: [UInt8]) -> String {
        (bytes + [0x41, 0xC3]).withUnsafeBytes { String(copying: $0.baseAddress, count: bytes.count) }
    }

    private func words(_ string: String) -> [UInt64] {
        let (low, high) = unsafeBitCast(string, to: (UInt64, UInt64).self)
        return [low, high]
    }

    @Test func `Text of each length`() {
        for count in 0...40 {
            let bytes = (0..<count).map { UInt8(0x20 + $0) }
            let expected = String(decoding: bytes, as: UTF8.self)
            #expect(copy(bytes) == expected)
            #expect(Array(copy(bytes).utf8) == bytes)
            // The longer ones differ in the addresses of their bytes.
            if count <= 15 { #expect(words(copy(bytes)) == words(expected)) }
        }
    }

    @Test func `Text other than ASCII, valid or not`() {
        for count in 2...20 {
            for position in 0..<(count - 1) {
                var bytes = [UInt8](repeating: 0x61, count: count)
                (bytes[position], bytes[position + 1]) = (0xC3, 0xA9)
                #expect(copy(bytes) == String(decoding: bytes, as: UTF8.self))
                bytes[position + 1] = 0x62  // Invalid: 0xC3 alone.
                #expect(copy(bytes) == String(decoding: bytes, as: UTF8.self))
                #expect(copy(bytes).unicodeScalars.contains("\u{FFFD}"))
            }
        }
    }

    @Test func `Text whose last byte is not ASCII, and text with zeros`() {
        for count in 1...17 {
            let cut = [UInt8](repeating: 0x61, count: count - 1) + [0xC3]
            #expect(copy(cut) == String(decoding: cut, as: UTF8.self))
            for position in 0..<count {
                var zeros = [UInt8](repeating: 0x61, count: count)
                zeros[position] = 0
                #expect(Array(copy(zeros).utf8) == zeros)
            }
        }
    }

    @Test func `No text, and control characters`() {
        #expect(String(copying: nil, count: 0).isEmpty)
        #expect(copy([0, 0x7F]) == "\0\u{7F}")
    }
}
