import PluginABI

/// The relocations: the addresses that the dynamic linker will write to, and the symbols that it needs for them.
struct ELFRelocations {
    private let dynamic: ELFDynamic
    /// The largest symbol number in the relocations plus one.
    private(set) var symbolCount: UInt64 = 0
    /// The arrays of functions that are called at load and at exit. Only addresses of code may be written into them.
    private let functionArrays: [Range<UInt64>]

    private var file: ELFBytes { dynamic.file }

    init(_ dynamic: ELFDynamic) throws(PluginError) {
        self.dynamic = dynamic
        var arrays: [Range<UInt64>] = []
        for (address, size) in [
            (ELFDynamic.Tag.initArray, ELFDynamic.Tag.initArraySize), (.finiArray, .finiArraySize),
        ] {
            guard let table = try dynamic.table(address, size, unit: 8) else { continue }
            arrays.append(table.address..<table.address + table.size)
        }
        functionArrays = arrays
        if let table = try dynamic.table(.relocations, .relocationsSize, unit: 24) {
            let relative = dynamic[.relativeCount] ?? 0
            try dynamic.file.check(
                relative <= table.size / 24,
                else: "it declares \(relative) relative relocations, but has only \(table.size / 24)")
            try check(table, relativeCount: relative)
        }
        if let table = try dynamic.table(.pltRelocations, .pltRelocationSize, unit: 24) {
            try check(table, relativeCount: 0)
        }
        try checkRelatives()
    }

    #if arch(x86_64)
        private static let relative: UInt32 = 8
        private static let indirect: UInt32 = 37
    #elseif arch(arm64)
        private static let relative: UInt32 = 1027
        private static let indirect: UInt32 = 1032
    #elseif arch(riscv64)
        private static let relative: UInt32 = 3
        private static let indirect: UInt32 = 58
    #endif

    /// Returns whether the dynamic linker knows a type of relocation.
    private static func isKnown(_ type: UInt32) -> Bool {
        switch type {
        #if arch(x86_64)
            case 0...2, 5...8, 10, 16...18, 32, 33, 36, 37: true
        #elseif arch(arm64)
            case 0, 256...262, 1024...1032: true
        #elseif arch(riscv64)
            case 0...12, 58: true
        #endif
        default: false
        }
    }

    /// An entry of a table of relocations.
    private struct Entry: BitwiseCopyable {
        let address: UInt64
        let type: UInt32
        let symbol: UInt32
        let addend: UInt64
    }

    private mutating func check(_ table: ELFDynamic.Table, relativeCount: UInt64) throws(PluginError) {
        // Constants outside of the loop, because a large module has tens of thousands of relocations.
        let (segments, relocatesText) = (dynamic.segments, dynamic.relocatesText)
        let file = dynamic.file.table(table.offset, table.size)
        let (relative, indirect, functionArrays) = (Self.relative, Self.indirect, functionArrays)
        var symbolCount: UInt64 = 0
        for index in 0..<table.size / 24 {
            let entry = try file.read(Entry.self, at: table.offset + index * 24)
            let type = entry.type
            let isAllowed = type == relative || (index >= relativeCount && Self.isKnown(type))
            if !isAllowed { throw file.damaged("relocation \(index) has type \(type), which is not allowed there") }
            if type == 0 { continue }
            try Self.checkAddress(entry.address, file, segments, relocatesText)
            symbolCount = max(symbolCount, UInt64(entry.symbol) + 1)
            guard type == relative || type == indirect else { continue }
            let mustBeCode = type == indirect || functionArrays.contains { $0.contains(entry.address) }
            if mustBeCode, !segments.isExecutable(entry.addend) {
                throw file.damaged("it would call a function at address \(entry.addend), where there is no code")
            }
        }
        self.symbolCount = max(self.symbolCount, symbolCount)
    }

    private func checkAddress(_ address: UInt64) throws(PluginError) {
        try Self.checkAddress(address, file, dynamic.segments, dynamic.relocatesText)
    }

    private static func checkAddress(
        _ address: UInt64, _ file: ELFBytes, _ segments: ELFSegments, _ relocatesText: Bool
    ) throws(PluginError) {
        guard let load = segments.load(holding: address, 8), load.isWritable || relocatesText else {
            throw file.damaged("a relocation would write to address \(address), where there is no writable data")
        }
    }

    /// Checks DT_RELR, in which an even word is an address, and an odd one a bitmap of the 63 words that follow.
    private func checkRelatives() throws(PluginError) {
        guard let table = try dynamic.table(.relatives, .relativeSize, unit: 8) else { return }
        let file = file.table(table.offset, table.size)
        var next: UInt64?
        for index in 0..<table.size / 8 {
            let word = try file.read(UInt64.self, at: table.offset + index * 8)
            if word & 1 == 0 {
                try checkAddress(word)
                next = word + 8
            } else {
                guard let start = next else {
                    throw file.damaged("its table \(ELFDynamic.Tag.relatives) does not begin with an address")
                }
                let last = UInt64(63 - word.leadingZeroBitCount)
                if last > 0 { try checkAddress(saturating(last - 1, times: 8, plus: start)) }
                next = saturating(63, times: 8, plus: start)
            }
        }
    }
}
