import CPluginHost
import Foundation
import Testing

@testable import TestSupport

/// Whether a file lacks a section, which is determined before its section headers are read.
@Suite struct SectionSearchTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private func lacks(_ path: String) -> Bool { plugin_host_lacks_section(path, "plugin_modules") == 1 }

    private func library(_ code: String = "") throws -> Data {
        try Data(contentsOf: URL(filePath: CFixture.build("int answer(void) { return 7; }\n\(code)")))
    }

    @Test func `Only a library without the section lacks it`() throws {
        let without = try folder.file("without.so", library())
        let with = try folder.file(
            "with.so", library("__attribute__((used, section(\"plugin_modules\"))) static const long record[] = {1};"))
        #expect(lacks(without) && !lacks(with))
        #expect(plugin_host_lacks_section(without, ".text") == 0)
    }

    @Test func `A file that is not a well-formed library may have the section`() throws {
        let good = try library()
        #expect(lacks(try folder.file("good.so", good)))
        func expectUnknown(_ name: String, _ change: (inout Data) -> Void) throws {
            var bytes = good
            change(&bytes)
            #expect(!lacks(try folder.file("\(name).so", bytes)), "\(name)")
        }
        let ones = Data(repeating: 0xff, count: 8)
        try expectUnknown("no-magic") { $0[0] = 0 }
        try expectUnknown("32-bit") { $0[4] = 1 }
        try expectUnknown("headers-outside") { $0.replaceSubrange(40..<48, with: ones) }
        try expectUnknown("odd-headers") { $0[58] = 40 }
        try expectUnknown("no-headers") { $0.replaceSubrange(60..<62, with: Data(count: 2)) }
        try expectUnknown("names-outside") { $0.replaceSubrange(62..<64, with: ones.prefix(2)) }
        try expectUnknown("cut") { $0.removeLast($0.count / 2) }
        try expectUnknown("empty") { $0 = Data() }
        #expect(!lacks("\(folder.path)/missing.so") && !lacks(folder.path) && !lacks("/dev/null"))
    }
}
