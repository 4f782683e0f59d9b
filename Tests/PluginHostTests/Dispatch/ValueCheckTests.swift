import PluginABI
import Testing

@testable import PluginHost

/// The check of the texts that modules pass.
struct ValueCheckTests {
    @Test func `A text of any length is refused exactly if it is not UTF-8, wherever the fault is`() {
        for count in 0...100 {
            // Memory of exactly this size, so that a sanitizer reports a read beyond it.
            let bytes = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: count)
            defer { bytes.deallocate() }
            bytes.initialize(repeating: UInt8(ascii: "t"))
            #expect(isSound(bytes))
            for index in 0..<count {
                bytes[index] = 0xFF
                #expect(!isSound(bytes), "byte \(index) of \(count)")
                bytes[index] = UInt8(ascii: "t")
                guard index + 1 < count else { continue }
                (bytes[index], bytes[index + 1]) = (0xC3, 0xA9)  // é
                #expect(isSound(bytes), "bytes \(index) and \(index + 1) of \(count)")
                (bytes[index], bytes[index + 1]) = (UInt8(ascii: "t"), UInt8(ascii: "t"))
            }
        }
    }

    @Test func `A text without a pointer is refused unless it is empty`() {
        #expect(isSound(.init(start: nil, count: 0)))
        for count in [1, 8, 100] {
            var value = plugin_value_string(nil, 0)
            value.count = UInt32(count)
            #expect(!value.isSound)
        }
    }

    private func isSound(_ bytes: UnsafeMutableBufferPointer<UInt8>) -> Bool {
        let text = UnsafeRawPointer(bytes.baseAddress)?.assumingMemoryBound(to: CChar.self)
        return plugin_value_string(text, UInt32(bytes.count)).isSound
    }
}
