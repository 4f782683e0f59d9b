import Foundation
import PluginABI
import Testing

@testable import PluginFile
@testable import TestSupport

@Suite struct ELFSectionsTests {
    private static let source = """
        __attribute__((used, retain, section("plugin_modules"))) static const char *const records[3] = {"a", "b", "c"};
        __attribute__((used, section("plugin_modules_2"))) static const int other = 1;
        """

    private func bytes(_ flags: [String] = []) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(filePath: CFixture.build(Self.source, flags))))
    }

    private func sections(_ bytes: [UInt8]) throws -> [ELFSections.Section] {
        try bytes.withUnsafeBytes { bytes in
            try ELFSections(ELFBytes(bytes: bytes, path: "/p/a.so")).loaded(named: "plugin_modules")
        }
    }

    @Test func `A section is found by its whole name, with its address in memory and its size`() throws {
        for flags in [[], ["-g"], ["-Wl,--gc-sections"], ["-s"]] {
            let found = try sections(bytes(flags))
            #expect(found.map(\.size) == [24] && found.allSatisfy { $0.address.isMultiple(of: 8) })
        }
        let program = try Data(contentsOf: URL(filePath: CFixture.program("int main(void) { return 0; }", ["-no-pie"])))
        #expect(try sections(Array(program)) == [])
    }

    @Test func `A file without section headers has no sections`() throws {
        var bytes = try bytes()
        bytes.replaceSubrange(40..<48, with: Array(repeating: 0, count: 8))
        bytes.replaceSubrange(60..<64, with: Array(repeating: 0, count: 4))
        #expect(try sections(bytes) == [])
        let isEmpty = try bytes.withUnsafeBytes { try ELFSections(ELFBytes(bytes: $0, path: "")).isEmpty }
        #expect(isEmpty)
    }

    @Test func `Section headers that lead out of the file, or are too many, are errors`() throws {
        let good = try bytes()
        for (offset, value) in [(40, [0xF0, 0xFF, 0xFF]), (60, [0xFF, 0xFE]), (62, [0x00, 0x70]), (58, [0x20])] {
            var bytes = good
            for (index, byte) in value.enumerated() { bytes[offset + index] = UInt8(byte) }
            let error = #expect(throws: PluginError.self) { try sections(bytes) }
            #expect(error?.code == .invalidFile)
        }
    }

    @Test func `No damage to the header and the section headers does harm`() throws {
        let good = try bytes()
        let start = good.withUnsafeBytes { Int($0.loadUnaligned(fromByteOffset: 40, as: UInt64.self)) }
        var random = SplitMix(seed: 20)
        for _ in 0..<20_000 {
            var bytes = good
            let range = random.next() % 4 == 0 ? 0..<64 : start..<good.count
            for _ in 0...random.next() % 3 {
                bytes[range.lowerBound + Int(random.next() % UInt64(range.count))] = UInt8(
                    truncatingIfNeeded: random.next())
            }
            _ = try? sections(bytes)
        }
    }

    @Test func `Program headers and notes tell whether a file is the one that was loaded`() throws {
        let bytes = try bytes()
        try bytes.withUnsafeBytes { bytes in
            let sections = try ELFSections(ELFBytes(bytes: bytes, path: ""))
            let (start, count) = (
                Int(bytes.loadUnaligned(fromByteOffset: 32, as: UInt64.self)),
                Int(bytes.loadUnaligned(fromByteOffset: 56, as: UInt16.self))
            )
            var headers = Array(bytes[start..<start + count * 56])
            #expect(headers.withUnsafeBytes { sections.hasProgramHeaders($0) })
            #expect(!headers.dropLast(56).withUnsafeBytes { sections.hasProgramHeaders($0) })
            headers[20] ^= 1
            #expect(!headers.withUnsafeBytes { sections.hasProgramHeaders($0) })
            #expect(!headers.withUnsafeBytes { sections.hasBytes($0, at: UInt64(bytes.count) - 8) })
        }
    }
}
