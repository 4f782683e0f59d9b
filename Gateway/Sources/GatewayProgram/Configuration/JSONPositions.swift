import PluginABI
import PluginHost

/// The positions of the members in a JSON text, for messages about them. The text is valid JSON.
struct JSONPositions {
    /// A position in a text, counted from 1. Columns are bytes.
    struct Position: Hashable {
        var line = 1
        var column = 1
    }

    private let bytes: [UInt8]
    private var index = 0
    private var line = 1
    private var lineStart = 0
    private var positions: [[String]: Position] = [:]

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        readValue([])
    }

    /// Returns the position of a member, by the names and numbers that lead to it.
    subscript(_ path: [String]) -> Position { positions[path] ?? Position() }

    private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

    private mutating func skipSpace() {
        while let byte = next, [0x20, 0x09, 0x0A, 0x0D].contains(byte) {
            index += 1
            if byte == 0x0A { (line, lineStart) = (line + 1, index) }
        }
    }

    private var here: Position { Position(line: line, column: index - lineStart + 1) }

    private mutating func readValue(_ path: [String]) {
        skipSpace()
        if path.isEmpty { positions[path] = here }
        switch next {
        case UInt8(ascii: "{"):
            readMembers(until: UInt8(ascii: "}")) { positions, _ in
                let start = positions.index
                let position = positions.here
                positions.skipString()
                let text = String(decoding: positions.bytes[start..<positions.index], as: UTF8.self)
                let name = (try? Value(json: text))?.string ?? text
                positions.positions[path + [name]] = position
                positions.skipSpace()
                positions.index += 1  // The colon.
                positions.readValue(path + [name])
            }
        case UInt8(ascii: "["):
            readMembers(until: UInt8(ascii: "]")) { positions, number in
                positions.positions[path + [String(number)]] = positions.here
                positions.readValue(path + [String(number)])
            }
        case UInt8(ascii: "\""): skipString()
        default:
            while let byte = next, !",]} \t\r\n".utf8.contains(byte) { index += 1 }
        }
    }

    private mutating func readMembers(until end: UInt8, _ read: (inout JSONPositions, Int) -> Void) {
        index += 1
        var number = 0
        while true {
            skipSpace()
            guard let byte = next, byte != end else { break }
            if byte == UInt8(ascii: ",") {
                index += 1
            } else {
                read(&self, number)
                number += 1
            }
        }
        index += 1
    }

    private mutating func skipString() {
        index += 1
        while let byte = next, byte != UInt8(ascii: "\"") { index += byte == UInt8(ascii: "\\") ? 2 : 1 }
        index += 1
    }
}
