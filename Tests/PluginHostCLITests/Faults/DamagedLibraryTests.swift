import Foundation
import PluginABI
import Testing

@testable import TestSupport

/// A library whose metadata for the Swift runtime is damaged kills a host at most once.
@Suite(.timeLimit(.minutes(30))) struct DamagedLibraryTests {
    let program: HostProgram

    init() throws { program = try HostProgram() }

    @Test func `A library with damaged protocol conformances is quarantined after it has killed one host`() throws {
        var bytes = [UInt8](try Data(contentsOf: URL(filePath: built("libModuleA.so"))))
        let section = try #require(self.section("swift5_protocol_conformances", of: bytes))
        // The section consists of relative pointers, which then point outside of all memory.
        for offset in stride(from: section.lowerBound, to: section.upperBound, by: 4) {
            withUnsafeBytes(of: Int32.min.littleEndian) { bytes.replaceSubrange(offset..<offset + 4, with: $0) }
        }
        let file = "\(program.plugins)/damaged.so"
        try Data(bytes).write(to: URL(filePath: file))
        try CModule().build(into: program.plugins, as: "good.so")
        let dying = try program.run("list")
        #expect(dying.signal != 0 || !dying.output.contains("damaged.so"), "\(dying.output)")
        for _ in 1...2 {
            let next = try program.run("list", "--json")
            #expect(next.code == 0 && next.signal == 0, "\(next.errors)")
            #expect(next.module("damaged.so")?["state"] == "quarantined", "\(next.output)")
            let message = next.module("damaged.so")?["error"]?["message"]?.string ?? ""
            #expect(message.contains("died during the opening of \(file)"), "\(message)")
            #expect(next.module("good.so")?["state"] == "active", "\(next.output)")
        }
    }

    /// Returns the position of a section in a library.
    private func section(_ name: String, of library: [UInt8]) -> Range<Int>? {
        func number(_ offset: Int, _ size: Int) -> Int {
            library[offset..<offset + size].reversed().reduce(0) { $0 << 8 | Int($1) }
        }
        // The headers of the sections: their offset, the size of one, their number, and the number of the one with the
        // names are in the header of the file.
        let (start, size, count) = (number(0x28, 8), number(0x3A, 2), number(0x3C, 2))
        let names = number(start + number(0x3E, 2) * size + 24, 8)
        for header in (0..<count).map({ start + $0 * size }) {
            let own = library[(names + number(header, 4))...].prefix { $0 != 0 }
            guard own.elementsEqual(name.utf8) else { continue }
            let offset = number(header + 24, 8)
            return offset..<offset + number(header + 32, 8)
        }
        return nil
    }
}
