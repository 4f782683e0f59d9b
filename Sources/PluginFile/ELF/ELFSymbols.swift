import PluginABI

/// The symbol table and the hash tables through which the dynamic linker finds symbols in it.
struct ELFSymbols {
    let dynamic: ELFDynamic
    /// The offset of symbol 0 in the file.
    let offset: UInt64
    /// The number of symbols according to the hash tables; `nil` if they do not determine it.
    private(set) var count: UInt64?
    /// The maximum number of symbols, limited by the space in the file.
    let limit: UInt64
    /// The hashes of the names, in the order of the symbols from `first` on; `nil` if there is no DT_GNU_HASH.
    private var hashes: (offset: UInt64, first: UInt64)?

    private var file: ELFBytes { dynamic.file }

    init(_ dynamic: ELFDynamic) throws(PluginError) {
        self.dynamic = dynamic
        guard let address = dynamic[.symbols], address % 8 == 0,
            let offset = dynamic.segments.fileOffset(address, 24)
        else { throw dynamic.file.damaged("its symbol table (DT_SYMTAB) is outside the loaded segments") }
        self.offset = offset
        // Linkers leave no gap after the symbols. If the names follow, they end the table.
        let room = dynamic.segments.bytesInFile(from: address)
        let names = dynamic.strings.address
        limit = (names > address ? min(room, names - address) : room) / 24
        try file.check(
            dynamic[.gnuHash] != nil || dynamic[.hash] != nil,
            else: "it has no hash table of its symbols (DT_GNU_HASH, DT_HASH)")
        let gnu = try countFromGNUHash()
        let classic = try countFromHash()
        if let gnu, let classic, gnu != classic {
            throw dynamic.file.damaged("its hash tables disagree: \(gnu) and \(classic) symbols")
        }
        count = gnu ?? classic
        guard let count else { return }
        let limit = limit
        try file.check(
            count <= limit, else: "its hash table has \(count) symbols, but there is room for only \(limit)")
    }

    /// Returns the number of symbols from DT_GNU_HASH. Its buckets are the starts of consecutive chains, each of which
    /// ends with an odd number; the last chain ends with the last symbol.
    private mutating func countFromGNUHash() throws(PluginError) -> UInt64? {
        guard let address = dynamic[.gnuHash] else { return nil }
        let start = try dynamic.table(.gnuHash, at: address, size: 16).offset
        let buckets = try file.word(at: start)
        let first = try file.word(at: start + 4)
        let words = try file.word(at: start + 8)
        let shift = try file.word(at: start + 12)
        let head = 16 + words * 8 + buckets * 4
        let size = dynamic.segments.bytesInFile(from: address)
        try file.check(
            buckets > 0 && words.nonzeroBitCount == 1 && shift < 32 && head <= size,
            else: "its hash table (DT_GNU_HASH) cannot have \(buckets) buckets, \(words) words and shift \(shift)")
        var last: UInt64 = 0
        let bucketTable = file.table(start + 16 + words * 8, buckets * 4)
        for index in 0..<buckets {
            let symbol = try bucketTable.word(at: start + 16 + words * 8 + index * 4)
            let isThere = symbol == 0 || (first..<max(first, limit)).contains(symbol)
            try file.check(isThere, else: "its hash table (DT_GNU_HASH) refers to symbol \(symbol), which is missing")
            last = max(last, symbol)
        }
        if last == 0 { return nil }
        while head + (last - first) * 4 + 4 <= size, last < limit {
            if try file.word(at: start + head + (last - first) * 4) & 1 == 1 {
                hashes = (start + head, first)
                return last + 1
            }
            last += 1
        }
        throw file.damaged("its hash table (DT_GNU_HASH) is not terminated")
    }

    /// Returns the number of symbols from DT_HASH. Each symbol is in at most one chain, so more steps than symbols mean
    /// a cycle.
    private func countFromHash() throws(PluginError) -> UInt64? {
        guard let address = dynamic[.hash] else { return nil }
        let start = try dynamic.table(.hash, at: address, size: 8).offset
        let buckets = try file.word(at: start)
        let symbols = try file.word(at: start + 4)
        try file.check(
            buckets > 0 && symbols <= limit,
            else: "its hash table (DT_HASH) has \(buckets) buckets, expected at least 1, and \(symbols) symbols, "
                + "expected at most \(limit)")
        _ = try dynamic.table(.hash, at: address, size: 8 + (buckets + symbols) * 4)
        var steps: UInt64 = 0
        for bucket in 0..<buckets {
            var symbol = try file.word(at: start + 8 + bucket * 4)
            while symbol != 0 {
                steps += 1
                let goesOn = symbol < symbols && steps <= symbols
                try file.check(goesOn, else: "a chain of its hash table (DT_HASH) is broken")
                symbol = try file.word(at: start + 8 + (buckets + symbol) * 4)
            }
        }
        return symbols
    }

    /// An entry of the table, as stored in the file: the name, four bits each of type and binding, the visibility, the
    /// section, and the value.
    struct Symbol {
        let head: UInt64
        let value: UInt64

        /// The offset of the name in the table of names.
        var name: UInt64 { head & 0xffff_ffff }
        var type: UInt64 { head >> 32 & 15 }
        var binding: UInt64 { head >> 36 & 15 }
        /// Whether the symbol's visibility is default or protected.
        var isVisible: Bool { head >> 40 & 3 == 0 || head >> 40 & 3 == 3 }
        /// The section: 0 if the symbol is defined elsewhere, 0xff00 or more if it is not in memory.
        var section: UInt64 { head >> 48 }
    }

    func symbol(_ index: UInt64) throws(PluginError) -> Symbol { try symbol(index, of: file) }

    /// - Parameter table: The file, or the part of it that contains the symbols.
    @inline(__always)
    private func symbol(_ index: UInt64, of file: ELFBytes) throws(PluginError) -> Symbol {
        let at = offset + index * 24
        return Symbol(head: try file.read(UInt64.self, at: at), value: try file.read(UInt64.self, at: at + 8))
    }

    /// The hash of the name of the entry function in DT_GNU_HASH.
    private static let hashOfEntry = "plugin_module_entry".utf8.reduce(5381 as UInt32) { $0 &* 33 &+ UInt32($1) }

    /// Checks all symbols, and returns whether the entry function of a module is among them.
    func findEntry(count: UInt64) throws(PluginError) -> Bool {
        // Constants outside of the loop, because a large module has tens of thousands of symbols.
        let (file, segments, strings) = (dynamic.file, dynamic.segments, dynamic.strings)
        try file.check(count <= limit, else: "it uses \(count) symbols, but there is room for only \(limit)")
        let table = file.table(offset, count * 24)
        let (hashStart, firstHashed) = hashes ?? (0, .max)
        let hashTable = file.table(hashStart, (count - min(count, firstHashed)) * 4)
        let hashOfEntry = Self.hashOfEntry | 1
        var found = false
        for index in 0..<count {
            let symbol = try symbol(index, of: table)
            let (name, value) = (symbol.name, symbol.value)
            try file.check(
                name < strings.size, else: "the name of symbol \(index) is outside the string table")
            if symbol.section == 0 || symbol.section >= 0xff00 { continue }
            switch symbol.type {
            case 2, 10:  // STT_FUNC, STT_GNU_IFUNC
                try file.check(
                    segments.isExecutable(value),
                    else: "symbol \(index) is a function at address \(value), where there is no code")
            case 6:  // STT_TLS: relative to the thread-local data
                let size = segments.threadLocal?.memorySize ?? 0
                try file.check(value <= size, else: "symbol \(index) is outside the thread-local data")
            default: try file.check(value <= segments.end, else: "symbol \(index) is outside the loaded segments")
            }
            // dlsym finds visible global and weak functions, by the hashes of their names if there are any.
            guard symbol.type == 2, symbol.binding == 1 || symbol.binding == 2, symbol.isVisible else { continue }
            if index >= firstHashed {
                let hash = try hashTable.read(UInt32.self, at: hashStart + (index - firstHashed) * 4)
                if hash | 1 != hashOfEntry { continue }
            }
            if file.isString("plugin_module_entry", at: strings.offset + name) { found = true }
        }
        return found
    }
}
