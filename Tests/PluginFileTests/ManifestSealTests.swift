import Foundation
import PluginABI
import Testing

@testable import PluginFile
@testable import TestSupport

@Suite struct ManifestSealTests {
    private static let json = #"{"name": "Sealed", "version": "1.0.0"}"#

    /// A library with a seal that a compiler has made from any texts.
    private static func library(
        magic: String = "PLUGIN_SEAL_MAGIC", size: Int = 40, major: String = "PLUGIN_ABI_MAJOR",
        counts: (manifest: String, toolchain: String, types: String)? = nil, text: [UInt8] = Array(json.utf8)
    ) throws -> [UInt8] {
        let counts = counts ?? ("\(text.count)", "0", "0")
        let numbers = text.map(String.init).joined(separator: ",")
        let source = """
            #include "plugin_abi.h"
            \(CFixture.entry)
            __attribute__((used, section("pluginhost_manifest"), aligned(8)))
            static const struct { plugin_seal header; unsigned char text[\(text.count)]; } seal = {
                {\(magic), \(size), \(major), 0, \(counts.manifest), \(counts.toolchain), \(counts.types)},
                {\(numbers)}};
            """
        return Array(try Data(contentsOf: URL(filePath: CFixture.build(source))))
    }

    private func seal(_ bytes: [UInt8], anyMachine: Bool = false) throws -> ManifestSeal? {
        try bytes.withUnsafeBytes { bytes in
            if !anyMachine { return try ELFImage(reading: bytes, path: "/p/a.so").seal }
            let file = ELFBytes(bytes: bytes, path: "/p/a.so")
            return try ManifestSeal(of: file, ELFSections(file, forAnyMachine: true))
        }
    }

    /// The offset of the header of the seal's section.
    private func header(_ bytes: [UInt8]) throws -> Int {
        try bytes.withUnsafeBytes { bytes in
            let sections = try ELFSections(ELFBytes(bytes: bytes, path: ""))
            return try Int(sections.start + #require(sections.all(named: ManifestSeal.section).first).index * 64)
        }
    }

    private func replace<Number: FixedWidthInteger>(_ bytes: inout [UInt8], _ offset: Int, _ number: Number) {
        withUnsafeBytes(of: number.littleEndian) { bytes.replaceSubrange(offset..<offset + $0.count, with: $0) }
    }

    @Test func `the texts are read, whether the file is for this machine or another one`() throws {
        var bytes = try Self.library(counts: ("38", "9", "2"), text: Array((Self.json + "swift 6.3{}").utf8))
        for machine in [nil, 183, 243] as [UInt16?] {
            if let machine { replace(&bytes, 18, machine) }
            let seal = try #require(try seal(bytes, anyMachine: machine != nil))
            #expect(seal.manifest == Self.json && seal.toolchain == "swift 6.3" && seal.typedManifest == "{}")
            #expect((seal.abiMajor, seal.abiMinor) == (1, 0))
        }
        #expect(throws: PluginError.self) { try seal(bytes) }
        let plain = Array(try Data(contentsOf: URL(filePath: CFixture.build(CFixture.entry))))
        #expect(try seal(plain) == nil)
    }

    /// A seal that contains a false statement, and a word of the error.
    struct Lie: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let word: String
        let make: @Sendable () throws -> [UInt8]
    }

    static let lies = [
        Lie(testDescription: "magic", word: "PLUGIN_SEAL_MAGIC") { try library(magic: "7") },
        Lie(testDescription: "header size", word: "PLUGIN_SEAL_MAGIC") { try library(size: 32) },
        Lie(testDescription: "major", word: "version 9.0") { try library(major: "9") },
        Lie(testDescription: "no manifest", word: "counts 0 bytes") { try library(counts: ("0", "38", "0")) },
        Lie(testDescription: "too long", word: "header counts 90") { try library(counts: ("50", "0", "0")) },
        Lie(testDescription: "too short", word: "header counts 50") { try library(counts: ("10", "0", "0")) },
        Lie(testDescription: "all", word: "18446744073709551615") { try library(counts: ("UINT64_MAX", "0", "0")) },
        Lie(testDescription: "sum", word: "18446744073709551577") { try library(counts: ("38", "0", "-39ull")) },
        Lie(testDescription: "toolchain", word: "257 of the toolchain") { try library(counts: ("38", "257", "0")) },
        Lie(testDescription: "not UTF-8", word: "UTF-8") { try library(text: [0x7B, 0xFF, 0x7D]) },
        Lie(testDescription: "rest", word: "zeros") { try library(counts: ("36", "0", "0")) },
        Lie(testDescription: "a megabyte", word: "1048577") {
            try library(text: Array(repeating: 0x20, count: 1 << 20 | 1))
        },
        Lie(testDescription: "four megabytes", word: "expected 40 to 3145728") {
            try library(text: Array(repeating: 0x20, count: 4 << 20))
        },
    ]

    @Test(arguments: lies) func `a seal with a false statement is an error`(lie: Lie) throws {
        let bytes = try lie.make()
        for anyMachine in [false, true] {
            let error = #expect(throws: PluginError.self) { try seal(bytes, anyMachine: anyMachine) }
            #expect(error?.code == (lie.word.hasPrefix("version") ? .incompatible : .invalidFile))
            #expect(error?.message.contains(lie.word) == true, "\(error?.message ?? "")")
            #expect(error?.message.contains("/p/a.so") == true)
        }
    }

    @Test func `a seal that is cut short, outside the file, overlapping or duplicate is an error`() throws {
        let good = try Self.library()
        let at = try header(good)
        func expect(_ word: String, _ change: (inout [UInt8]) -> Void) {
            var bytes = good
            change(&bytes)
            let error = #expect(throws: PluginError.self) { try seal(bytes) }
            #expect(error?.code == .invalidFile && error?.message.contains(word) == true, "\(error?.message ?? "")")
        }
        expect("cut short") { $0.removeLast(64) }
        expect("has 39 bytes") { replace(&$0, at + 32, 39 as UInt64) }
        expect("cut short") { replace(&$0, at + 32, UInt64(good.count)) }
        expect("refers to byte") { replace(&$0, at + 32, UInt64.max) }
        for offset in [0, 64, UInt64(at)] { expect("overlaps") { replace(&$0, at + 24, offset) } }
        // The neighbouring section gets the same name and type.
        let name = Array(good[at..<at + 4])
        expect("has 2 seals") {
            $0.replaceSubrange(at + 64..<at + 68, with: name)
            replace(&$0, at + 68, 1 as UInt32)
        }
    }

    @Test func `no damage to a seal does harm`() throws {
        let good = try Self.library()
        let at = try header(good)
        let start = good.withUnsafeBytes { Int($0.loadUnaligned(fromByteOffset: at + 24, as: UInt64.self)) }
        var random = SplitMix(seed: 23)
        for _ in 0..<10_000 {
            var bytes = good
            let range = random.next() % 2 == 0 ? at..<at + 64 : start..<start + 40
            for _ in 0...random.next() % 3 {
                bytes[range.lowerBound + Int(random.next() % UInt64(range.count))] = UInt8(
                    truncatingIfNeeded: random.next())
            }
            do { _ = try seal(bytes, anyMachine: true) } catch { #expect(error is PluginError) }
        }
    }

    // MARK: - Writing

    private func sealed(_ bytes: [UInt8], _ seal: ManifestSeal) throws -> [UInt8] {
        try bytes.withUnsafeBytes { try SealWriter.sealed($0, with: seal, path: "/p/a.so") }
    }

    @Test func `a seal is only appended, and segments stay the same to the byte`() throws {
        let plain = Array(try Data(contentsOf: URL(filePath: CFixture.build(CFixture.entry))))
        let first = ManifestSeal(abiMinor: 0, toolchain: "swift 6.3", manifest: Self.json, typedManifest: "{}")
        let once = try sealed(plain, first)
        // The file header states the offset and the number of the section headers.
        let header = [40..<48, 60..<62]
        let same = plain.indices.filter { index in !header.contains { $0.contains(index) } }
        #expect(same.allSatisfy { plain[$0] == once[$0] })
        #expect(try seal(once)?.hasSameContent(as: first) == true)
        #expect(try sealed(once, first) == once)

        let other = ManifestSeal(abiMinor: 0, toolchain: "", manifest: "{\"name\": \"Other\"}", typedManifest: nil)
        let again = try sealed(once, other)
        #expect(try seal(again)?.hasSameContent(as: other) == true)
        #expect(same.allSatisfy { plain[$0] == again[$0] })
        let sections = try again.withUnsafeBytes { try ELFSections(ELFBytes(bytes: $0, path: "")).count }
        #expect(try once.withUnsafeBytes { try ELFSections(ELFBytes(bytes: $0, path: "")).count } == sections)
    }

    @Test func `a file without section headers, or with another embedded manifest, is not sealed`() throws {
        let seal = ManifestSeal(abiMinor: 0, toolchain: "", manifest: "{}", typedManifest: nil)
        let embedded = #expect(throws: PluginError.self) { try sealed(Self.library(), seal) }
        #expect(embedded?.code == .sealMismatch)
        let same = ManifestSeal(abiMinor: 0, toolchain: "", manifest: Self.json, typedManifest: nil)
        #expect(try sealed(Self.library(), same) == Self.library())

        var bytes = Array(try Data(contentsOf: URL(filePath: CFixture.build(CFixture.entry))))
        replace(&bytes, 40, 0 as UInt64)
        replace(&bytes, 60, 0 as UInt32)
        let error = #expect(throws: PluginError.self) { try sealed(bytes, seal) }
        #expect(error?.message.contains("--strip-section-headers") == true, "\(error?.message ?? "")")
    }

    // MARK: - Comparing

    private func check(_ seal: ManifestSeal, _ text: String, minor: UInt16 = 3, toolchain: String = "c") throws {
        let manifest = try text.utf8Span.span.withUnsafeBytes { try ModuleManifest(parsing: $0, abiMinor: minor) }
        try seal.check(minor: minor, toolchain: toolchain, text: text, manifest: manifest, path: "/p/a.so")
    }

    @Test func `of a seal that the build has embedded, only the manifest counts`() throws {
        let embedded = try #require(try seal(Self.library()))
        #expect(embedded.isEmbedded)
        try check(embedded, Self.json)
        let appended = ManifestSeal(abiMinor: 0, toolchain: "c", manifest: Self.json, typedManifest: nil)
        try check(appended, Self.json, minor: 0)
        #expect(throws: PluginError.self) { try check(appended, Self.json) }
        #expect(throws: PluginError.self) { try check(appended, Self.json, minor: 0, toolchain: "swift") }
        let other = Self.json.replacing("1.0.0", with: "1.0.1")
        let error = #expect(throws: PluginError.self) { try check(embedded, other) }
        #expect(error?.message.contains("differs in “version”") == true, "\(error?.message ?? "")")
        // The code also has types, which no build embeds.
        let typed = ManifestSeal(abiMinor: 3, toolchain: "c", manifest: Self.json, typedManifest: "{}")
        #expect(try sealed(Self.library(), typed) == Self.library())
    }

    @Test func `a seal that the build has embedded is never replaced, even if it cannot be read`() throws {
        let seal = ManifestSeal(abiMinor: 0, toolchain: "", manifest: Self.json, typedManifest: nil)
        let error = #expect(throws: PluginError.self) { try sealed(Self.library(magic: "7"), seal) }
        #expect(error?.code == .invalidFile && error?.message.contains("PLUGIN_SEAL_MAGIC") == true)
        let other = Self.json.replacing("1.0.0", with: "1.0.1")
        let changed = ManifestSeal(abiMinor: 0, toolchain: "", manifest: other, typedManifest: nil)
        let mismatch = #expect(throws: PluginError.self) { try sealed(Self.library(), changed) }
        #expect(mismatch?.message.contains("“version”") == true, "\(mismatch?.message ?? "")")
    }
}
