import CPluginABI
import PluginABI
import Testing

@testable import PluginHost

/// Names as bytes: how they are compared, hashed and found.
@Suite struct NameIndexTests {
    private final class Named: Sendable {
        let bytes: [UInt8]
        nonisolated(unsafe) let name: plugin_string  // Sound: the bytes never change.

        init(_ bytes: [UInt8]) {
            self.bytes = bytes
            let place = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count + 1)
            for (index, byte) in bytes.enumerated() { place[index] = CChar(bitPattern: byte) }
            name = plugin_string(bytes: place, count: UInt64(bytes.count))
        }

        deinit { UnsafeMutablePointer(mutating: name.bytes)?.deallocate() }
    }

    /// Names of every length around multiples of eight bytes, and the same names with one byte changed at any position.
    static let names: [[UInt8]] = {
        var names: [[UInt8]] = [[]]
        for count in 1...25 {
            let name = (0..<count).map { UInt8(ascii: "a") + UInt8($0 % 26) }
            names.append(name)
            for place in 0..<count {
                var other = name
                other[place] ^= 0x80
                names.append(other)
                other[place] = 0
                names.append(other)
            }
        }
        return names
    }()

    @Test func `Every name is found, and no other`() {
        let (present, absent) = (
            Self.names.enumerated().filter { $0.offset % 2 == 0 }, Self.names.enumerated().filter { $0.offset % 2 == 1 }
        )
        let elements = present.map { Named($0.element) }
        let index = NameIndex(elements, by: \.name)
        for element in elements {
            let copy = Named(element.bytes)
            #expect(index.find(copy.name)?.takeUnretainedValue() === element, "\(element.bytes)")
            withExtendedLifetime(copy) {}
        }
        for (_, bytes) in absent {
            let name = Named(bytes)
            #expect(index.find(name.name) == nil, "\(bytes)")
            withExtendedLifetime(name) {}
        }
    }

    @Test func `An empty index finds nothing`() {
        let index = NameIndex([Named](), by: \.name)
        let name = Named([1])
        #expect(index.find(plugin_string()) == nil && index.find(name.name) == nil)
        withExtendedLifetime(name) {}
    }

    @Test func `Names are equal when their bytes are, and equal names have equal hashes`() {
        let (names, copies) = (Self.names.prefix(101).map(Named.init), Self.names.prefix(101).map(Named.init))
        for (left, one) in names.enumerated() {
            #expect(NameTable.hash(one.name) == NameTable.hash(copies[left].name))
            for (right, two) in copies.enumerated() {
                #expect((one.name == two.name) == (left == right), "\(one.bytes) \(two.bytes)")
            }
        }
        withExtendedLifetime((names, copies)) {}
        #expect(plugin_string() == plugin_string())
    }

    /// A slash separates target and action, and its position matters.
    @Test(arguments: [("a", "bc"), ("ab", "c"), ("abc", ""), ("", "abc"), ("b", "ac"), ("c", "ab")])
    func `Target and action are distinguished`(target: String, action: String) {
        let (own, other) = (Named(Array(target.utf8)), Named(Array(action.utf8)))
        let (joined, nothing) = (Named(Array((target + action).utf8)), Named([]))
        let hash = NameTable.hash(own.name, other.name)
        #expect(hash != NameTable.hash(other.name, own.name))
        if !other.bytes.isEmpty { #expect(hash != NameTable.hash(joined.name, nothing.name)) }
        withExtendedLifetime((own, other, joined, nothing)) {}
    }
}
