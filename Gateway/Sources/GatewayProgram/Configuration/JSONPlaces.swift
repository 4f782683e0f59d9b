import PluginABI
import PluginHost

/// The places of the members in a JSON text, for messages about them. The text is valid JSON.
struct JSONPlaces {
    /// A place in a text, counted from 1. Columns are bytes.
    struct Place: Hashable {
        var line = 1
        var column = 1
    }

    private let bytes: [UInt8]
    private var index = 0
    private var line = 1
    private var lineStart = 0
    private var places: [[String]: Place] = [:]

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        readValue([])
    }

    /// Returns the place of a member, by the names and numbers that lead to it.
    subscript(_ path: [String]) -> Place { places[path] ?? Place() }

    private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

    private mutating func skipSpace() {
        while let byte = next, [0x20, 0x09, 0x0A, 0x0D].contains(byte) {
            index += 1
            if byte == 0x0A { (line, lineStart) = (line + 1, index) }
        }
    }

    private var here: Place { Place(line: line, column: index - lineStart + 1) }

    private mutating func readValue(_ path: [String]) {
        skipSpace()
        if path.isEmpty { places[path] = here }
        switch next {
        case UInt8(ascii: "{"):
            readMembers(until: UInt8(ascii: "}")) { places, _ in
                let start = places.index
                let place = places.here
                places.skipString()
                let text = String(decoding: places.bytes[start..<places.index], as: UTF8.self)
                let name = (try? Value(json: text))?.string ?? text
                places.places[path + [name]] = place
                places.skipSpace()
                places.index += 1  // The colon.
                places.readValue(path + [name])
            }
        case UInt8(ascii: "["):
            readMembers(until: UInt8(ascii: "]")) { places, number in
                places.places[path + [String(number)]] = places.here
                places.readValue(path + [String(number)])
            }
        case UInt8(ascii: "\""): skipString()
        default:
            while let byte = next, !",]} \t\r\n".utf8.contains(byte) { index += 1 }
        }
    }

    private mutating func readMembers(until end: UInt8, _ read: (inout JSONPlaces, Int) -> Void) {
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
