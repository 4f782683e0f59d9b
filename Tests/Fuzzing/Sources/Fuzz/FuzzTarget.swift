import PluginABI

@testable import PluginHost

/// What reads text or bytes from outside. A test ends the process where something does not hold.
enum FuzzTarget: String, CaseIterable {
    case elf, json, plist, pattern, url

    func test(_ bytes: UnsafeRawBufferPointer) {
        switch self {
        case .elf: testELF(bytes)
        case .json: testJSON(bytes)
        case .plist: testPropertyList(bytes)
        case .pattern: testPattern(bytes)
        case .url: testURL(bytes)
        }
    }

    /// The inputs to begin with. Those of `elf` are shared libraries, which scripts/fuzz compiles.
    var seeds: [String] {
        switch self {
        case .elf: []
        case .json: Self.jsonSeeds
        case .plist: Self.propertyListSeeds
        case .pattern: Self.patternSeeds
        case .url: Self.urlSeeds
        }
    }
}

/// The bytes as text; nil where they are no UTF-8, which all readers of text are spared.
func text(_ bytes: some Collection<UInt8>) -> String? { String(validating: bytes, as: UTF8.self) }
