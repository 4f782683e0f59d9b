import Foundation
import Testing

@testable import TestSupport

/// A module that needs as many libraries as a test requires, in a file of a few kilobytes. Its dynamic section is moved
/// to a place with enough room for them.
struct NeedyModule {
    private let bytes: [UInt8]

    /// - Parameters:
    ///   - names: The libraries that it can need.
    ///   - runpath: The folders in which the libraries are searched for.
    init(names: [String], runpath: [String]) throws {
        let symbols = names.enumerated().map { "int x\($0) __asm__(\"\($1)\");" }.joined(separator: "\n")
        let room = "\(Self.mark)".utf8.map(String.init).joined(separator: ",")
        let path = try CFixture.build(
            "\(CFixture.entry)\n\(symbols)\nchar room[32768] __attribute__((aligned(16))) = {\(room)};",
            ["-nostdlib", "-Wl,-rpath,\(runpath.joined(separator: ":"))"])
        bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
    }

    private static let mark = "room-for-needs!!"

    /// The file with the given needs.
    func needing(_ needs: [String]) throws -> Data {
        var bytes = bytes
        func integer(_ at: Int) -> Int { bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: at, as: Int.self) } }
        func set(_ at: Int, _ value: Int) {
            withUnsafeBytes(of: value) { for (place, byte) in $0.enumerated() { bytes[at + place] = byte } }
        }
        let headers = (0..<Int(bytes[56])).map { 64 + $0 * 56 }
        let header = try #require(headers.first { bytes[$0] == 2 && bytes[$0 + 3] == 0 })
        let (dynamic, size) = (integer(header + 8), integer(header + 32))
        let room = try #require(bytes.firstRange(of: Array(Self.mark.utf8))?.lowerBound)
        let load = try #require(
            headers.first {
                bytes[$0] == 1 && bytes[$0 + 3] == 0 && integer($0 + 8) <= room
                    && room < integer($0 + 8) + integer($0 + 32)
            })
        let entries = stride(from: dynamic, to: dynamic + size, by: 16).map { (integer($0), integer($0 + 8)) }
            .prefix { $0.0 != 0 }
        // A name has the same offset in the file as in memory, since the names precede everything that is moved.
        let strings = try #require(entries.first { $0.0 == 5 }).1
        let needs = try needs.map { name in
            let text = Array("\(name)\0".utf8)
            return (1, try #require(bytes[strings...].firstRange(of: text)?.lowerBound) - strings)
        }
        var at = room
        for (tag, value) in entries + needs + [(0, 0)] {
            set(at, tag)
            set(at + 8, value)
            at += 16
        }
        let address = integer(load + 16) + room - integer(load + 8)
        for (field, value) in [(8, room), (16, address), (24, address), (32, at - room), (40, at - room)] {
            set(header + field, value)
        }
        return Data(bytes)
    }
}
