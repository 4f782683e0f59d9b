import PluginABI

@testable import PluginHost

/// A reader of text or bytes from outside. A failed check ends the process.
enum FuzzTarget: String, CaseIterable {
    case elf, json, plist, pattern, url, wire, scan

    func test(_ bytes: UnsafeRawBufferPointer) {
        switch self {
        case .elf: testELF(bytes)
        case .json: testJSON(bytes)
        case .plist: testPropertyList(bytes)
        case .pattern: testPattern(bytes)
        case .url: testURL(bytes)
        case .wire: testWire(bytes)
        case .scan: testScan(bytes)
        }
    }

    /// The initial inputs. Those of `elf` are shared libraries, which scripts/fuzz compiles.
    var seeds: [[UInt8]] {
        switch self {
        case .elf: []
        case .json: Self.jsonSeeds.map { Array($0.utf8) }
        case .plist: Self.propertyListSeeds.map { Array($0.utf8) }
        case .pattern: Self.patternSeeds.map { Array($0.utf8) }
        case .url: Self.urlSeeds.map { Array($0.utf8) }
        case .wire, .scan: Self.wireSeeds
        }
    }
}

/// The bytes as text; nil if they are not UTF-8, which readers of text never receive.
func text(_ bytes: some Collection<UInt8>) -> String? { String(validating: bytes, as: UTF8.self) }
