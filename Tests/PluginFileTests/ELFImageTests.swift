import Foundation
import PluginABI
import Testing

@testable import PluginFile
@testable import TestSupport

@Suite struct ELFImageTests {
    @Test func `A module's properties are read from its dynamic section`() throws {
        let path = try CFixture.build(
            CFixture.entry, ["-Wl,-soname,libfacts.so.1", "-Wl,-rpath,$ORIGIN:/opt/x", "-Wl,--build-id", "-lc"])
        let image = try read(path)
        #expect(image.exportsEntry)
        #expect(image.soname == "libfacts.so.1")
        #expect(image.runpath == ["$ORIGIN", "/opt/x"])
        #expect(image.needed.contains("libc.so.6"))
        #expect(image.buildID.map { $0.count >= 16 } == true)
        #expect(image.mappedSize > 4096)
    }

    @Test func `Every style of symbol hash table is read`() throws {
        for style in ["gnu", "sysv", "both"] {
            #expect(try read(CFixture.build(CFixture.entry, ["-Wl,--hash-style=\(style)"])).exportsEntry)
        }
    }

    @Test func `An entry function that its hash does not lead to does not count`() throws {
        var file = try bytes(CFixture.build(CFixture.entry, ["-Wl,--hash-style=gnu"]))
        let hash = "plugin_module_entry".utf8.reduce(5381 as UInt32) { $0 &* 33 &+ UInt32($1) } >> 1
        let places = stride(from: 0, to: file.count - 3, by: 4).filter { at in
            file.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: at, as: UInt32.self) } >> 1 == hash
        }
        try #require(places.count == 1)
        file[places[0] + 1] ^= 1
        let image = try file.withUnsafeBytes { try ELFImage(reading: $0, path: "x.so") }
        #expect(!image.exportsEntry)
    }

    @Test func `Libraries with thread-local data, versions, packed and indirect relocations are accepted`() throws {
        let source = """
            _Thread_local int a = 1; int b; int *c = &b; static int f1(void) { return 1; }
            static void *resolve(void) { return (void *)f1; } int chosen(void) __attribute__((ifunc("resolve")));
            __attribute__((constructor)) static void start(void) { b = a + chosen(); }
            """ + CFixture.entry
        for flags in [[], ["-Wl,-z,now"], ["-Wl,-z,pack-relative-relocs"], ["-Wl,-z,separate-code"], ["-s"], ["-g"]] {
            guard let path = try? CFixture.build(source, flags) else { continue }
            #expect(try read(path).exportsEntry)
        }
    }

    @Test func `The C library is not taken for an executable, although it names a dynamic linker`() throws {
        // The file is read to its end: reading it as a file of known size can omit the end, such as this line.
        let file = try #require(FileHandle(forReadingAtPath: "/proc/self/maps"))
        let maps = try file.readToEnd() ?? Data()
        let lines = String(decoding: maps, as: UTF8.self).split(separator: "\n")
        let line = try #require(lines.first { $0.hasSuffix("/libc.so.6") })
        let image = try read(String(line[(line.firstIndex(of: "/") ?? line.startIndex)...]))
        #expect(image.soname == "libc.so.6")
    }

    @Test func `The error for a library without the entry symbol says what to do`() throws {
        for source in [
            "int x;", "__attribute__((visibility(\"hidden\"))) \(CFixture.entry)", "int plugin_module_entry;",
        ] {
            let image = try read(CFixture.build(source))
            #expect(!image.exportsEntry)
            let error = #expect(throws: PluginError.self) { try image.requireEntry(path: "x.so") }
            #expect(error?.code == .invalidFile)
            #expect(error?.message.contains("public and marked @_cdecl(\"plugin_module_entry\")") == true)
        }
    }

    @Test func `The error for a file that is not ELF says what the file looks like`() {
        let cases: [([UInt8], String)] = [
            ([], "is empty"), ([0x7F], "cut short: 1 bytes"), (Array("\u{7F}ELF".utf8), "cut short: 4 bytes"),
            (Array("#!/bin/sh\n".utf8), "a script"), (Array("!<arch>\n".utf8), "ar archive"),
            (Array("hello\n".utf8), "a text file"), ([0xCF, 0xFA, 0xED, 0xFE, 0, 0], "Mach-O"),
            ([UInt8](repeating: 0, count: 5000), "zero bytes"), ([1, 2, 3], "unknown format"),
        ]
        for (bytes, text) in cases { #expect(refusal(bytes).contains(text)) }
    }

    @Test func `Executables and object files are refused as such`() throws {
        for flags in [["-fPIE", "-pie"], ["-no-pie", "-static"], ["-no-pie"]] {
            guard let path = try? CFixture.program("int main(void) { return 0; }", flags) else { continue }
            #expect(refusal(try bytes(path)).contains("is an executable"))
        }
        #expect(refusal(try bytes(CFixture.program("int x;", ["-c"]))).contains("an object file"))
    }

    @Test func `A file truncated at any length is refused`() throws {
        for path in [try CFixture.build(CFixture.entry), built("libModuleA.so")] {
            let whole = try bytes(path)
            _ = try read(path)
            for length in stride(from: 0, to: whole.count, by: 512) {
                let message = refusal(whole[..<length])
                #expect(message.contains("cut short") || message.contains("is empty"), "\(length): \(message)")
            }
        }
    }

    @Test(arguments: [
        (4, 1, 1, "32-bit"), (4, 1, 9, "class 9"), (5, 1, 2, "big-endian"), (5, 1, 0, "byte order 0"),
        (6, 1, 2, "versions 2 and 1"),
        (7, 1, 9, "operating system"), (16, 2, 1, "object file"), (16, 2, 2, "an executable"), (16, 2, 4, "core dump"),
        (16, 2, 99, "file type 99"), (18, 2, 8, "built for MIPS"), (18, 2, 0xEEEE, "unknown machine"),
        (20, 4, 7, "and 7"),
        (52, 2, 1, "e_ehsize"), (54, 2, 0, "e_phentsize"), (54, 2, 57, "e_phentsize"), (56, 2, 0, "0 program headers"),
        (56, 2, 0xFFFF, "65535 program headers"), (32, 8, 0, "cannot begin"), (32, 8, 65, "cannot begin"),
        (32, 8, -8, "damaged"), (32, 8, 1 << 40, "cut short"), (40, 8, -1, "damaged"), (40, 8, 1 << 40, "cut short"),
        (58, 2, 1, "e_shentsize"), (60, 2, 0xFEFF, "cut short"), (62, 2, 0xFEFF, "section names"),
    ])
    func `A header field out of range is named`(offset: Int, size: Int, value: Int, text: String) throws {
        var file = try bytes(CFixture.build(CFixture.entry))
        set(&file, offset, size, value)
        let message = refusal(file)
        #expect(message.contains(text), "\(message)")
        // The message says what to do.
        let advice = ["Build or copy it again.", "Copy it again.", "Build the module", "Link the module"]
        #expect(advice.contains(where: message.contains), "\(message)")
    }

    @Test func `Any field of a program header that is out of range is refused or harmless`() throws {
        let whole = try bytes(CFixture.build(CFixture.entry))
        let count = Int(whole[56])
        for header in 0..<count {
            let at = 64 + header * 56
            for field in [8, 16, 32, 40, 48] {
                for value in [-1, Int.max, 1 << 47, whole.count, 3] {
                    var file = whole
                    set(&file, at + field, 8, value)
                    let message = refusal(file)
                    if whole[at] == 1, field < 40, value != 3 {
                        #expect(message != "", "header \(header) field \(field)")
                    }
                }
            }
        }
    }

    @Test func `Entries of the dynamic section that are out of range do no harm, and wrong addresses are refused`()
        throws
    {
        let whole = try bytes(CFixture.build(CFixture.entry, ["-Wl,--hash-style=both"]))
        let dynamic = try #require(dynamicSection(whole))
        let addresses: Set = [4, 5, 6, 7, 23, 25, 0x6fff_fef5, 0x6fff_fff0, 0x6fff_fffe]
        for at in stride(from: dynamic.lowerBound, to: dynamic.upperBound, by: 16) {
            let tag = integer(whole, at)
            if tag == 0 { break }
            for value in [-1, Int.max, 0, 1, whole.count, 1 << 40] {
                var file = whole
                set(&file, at + 8, 8, value)
                let message = refusal(file)
                if addresses.contains(tag), value > 1 << 30 { #expect(message != "", "tag \(tag) = \(value)") }
            }
        }
    }

    @Test func `Random bit flips never trap`() throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("bit flips: seed \(seed)")
        var random = SplitMix(seed: seed)
        for path in [try CFixture.build(CFixture.entry), built("libModuleA.so")] {
            var file = try bytes(path)
            let dynamic = try #require(dynamicSection(file))
            let regions = [0..<64 + Int(file[56]) * 56, dynamic, 0..<min(file.count, 40_000), 0..<file.count]
            for round in 0..<400 {
                let at = Int.random(in: regions[round % regions.count], using: &random)
                let bit = UInt8(1) << UInt8.random(in: 0..<8, using: &random)
                file[at] ^= bit
                _ = refusal(file)
                file[at] ^= bit
            }
        }
    }

    @Test func `Random bytes after a valid header never trap`() throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("random bytes: seed \(seed)")
        var random = SplitMix(seed: seed)
        let whole = try bytes(CFixture.build(CFixture.entry))
        for _ in 0..<300 {
            var file = whole
            for _ in 0..<50 {
                file[Int.random(in: 64..<file.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            _ = refusal(file)
        }
    }

    // MARK: -

    private func bytes(_ path: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: URL(fileURLWithPath: path))) }

    private func read(_ path: String) throws -> ELFImage {
        try bytes(path).withUnsafeBytes { try ELFImage(reading: $0, path: path) }
    }

    /// The message of the error; empty if the file is accepted.
    private func refusal(_ bytes: [UInt8]) -> String { refusal(bytes[...]) }

    private func refusal(_ bytes: ArraySlice<UInt8>) -> String {
        do {
            _ = try bytes.withUnsafeBytes { try ELFImage(reading: $0, path: "x.so") }
            return ""
        } catch {
            #expect((error as? PluginError)?.code == .invalidFile)
            return (error as? PluginError)?.message ?? ""
        }
    }

    private func set(_ bytes: inout [UInt8], _ offset: Int, _ size: Int, _ value: Int) {
        for index in 0..<size { bytes[offset + index] = UInt8(truncatingIfNeeded: value >> (8 * index)) }
    }

    private func integer(_ bytes: [UInt8], _ offset: Int) -> Int {
        bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: Int.self) }
    }

    private func dynamicSection(_ bytes: [UInt8]) -> Range<Int>? {
        let header = (0..<Int(bytes[56])).map { 64 + $0 * 56 }.first { bytes[$0] == 2 && bytes[$0 + 3] == 0 }
        return header.map { integer(bytes, $0 + 8)..<integer(bytes, $0 + 8) + integer(bytes, $0 + 32) }
    }
}
