import PluginABI

/// The symbol table and the hash tables through which the dynamic linker finds symbols in it.
struct ELFSymbols {
    let dynamic: ELFDynamic
    /// Where symbol 0 lies in the file.
    let offset: UInt64
    /// How many symbols the hash tables know of; nil where they do not tell.
    private(set) var count: UInt64?
    /// How many there is room for.
    let limit: UInt64

    private var file: ELFBytes { dynamic.file }

    init(_ dynamic: ELFDynamic) throws(PluginError) {
        self.dynamic = dynamic
        guard let address = dynamic[.symbols], address % 8 == 0,
            let offset = dynamic.segments.fileOffset(address, 24)
        else { throw dynamic.file.damaged("its symbol table (DT_SYMTAB) lies outside of what is loaded") }
        self.offset = offset
        // Linkers put nothing between the symbols and what follows; names that follow end the table.
        let room = dynamic.segments.bytesInFile(from: address)
        let names = dynamic.strings.address
        limit = (names > address ? min(room, names - address) : room) / 24
        guard dynamic[.gnuHash] != nil || dynamic[.hash] != nil else {
            throw dynamic.file.damaged("it has no hash table of its symbols (DT_GNU_HASH, DT_HASH)")
        }
        let gnu = try countFromGNUHash()
        let classic = try countFromHash()
        if let gnu, let classic, gnu != classic {
            throw dynamic.file.damaged("its hash tables disagree: \(gnu) and \(classic) symbols")
        }
        count = gnu ?? classic
        if let count, count > limit {
            throw dynamic.file.damaged("its hash table speaks of \(count) symbols, and there is room for \(limit)")
        }
    }

    /// Follows DT_GNU_HASH: its buckets are the starts of chains that lie one behind the other, each ended by an odd
    /// number; the last one ends with the last symbol.
    private func countFromGNUHash() throws(PluginError) -> UInt64? {
        guard let address = dynamic[.gnuHash] else { return nil }
        let start = try dynamic.table(.gnuHash, at: address, size: 16).offset
        let buckets = UInt64(try file.read(UInt32.self, at: start))
        let first = UInt64(try file.read(UInt32.self, at: start + 4))
        let words = UInt64(try file.read(UInt32.self, at: start + 8))
        let shift = try file.read(UInt32.self, at: start + 12)
        let head = 16 + words * 8 + buckets * 4
        let size = dynamic.segments.bytesInFile(from: address)
        guard buckets > 0, words.nonzeroBitCount == 1, shift < 32, head <= size else {
            throw file.damaged("its hash table (DT_GNU_HASH) has \(buckets) buckets, \(words) words, shift \(shift)")
        }
        var last: UInt64 = 0
        for index in 0..<buckets {
            let symbol = UInt64(try file.read(UInt32.self, at: start + 16 + words * 8 + index * 4))
            guard symbol == 0 || (first..<max(first, limit)).contains(symbol) else {
                throw file.damaged("its hash table (DT_GNU_HASH) names symbol \(symbol)")
            }
            last = max(last, symbol)
        }
        if last == 0 { return nil }
        while head + (last - first) * 4 + 4 <= size, last < limit {
            if try file.read(UInt32.self, at: start + head + (last - first) * 4) & 1 == 1 { return last + 1 }
            last += 1
        }
        throw file.damaged("its hash table (DT_GNU_HASH) has no end")
    }

    /// Follows DT_HASH. Each symbol is in one chain at most, so more steps than symbols mean a circle.
    private func countFromHash() throws(PluginError) -> UInt64? {
        guard let address = dynamic[.hash] else { return nil }
        let start = try dynamic.table(.hash, at: address, size: 8).offset
        let buckets = UInt64(try file.read(UInt32.self, at: start))
        let symbols = UInt64(try file.read(UInt32.self, at: start + 4))
        guard buckets > 0, symbols <= limit else {
            throw file.damaged("its hash table (DT_HASH) has \(buckets) buckets and \(symbols) symbols")
        }
        _ = try dynamic.table(.hash, at: address, size: 8 + (buckets + symbols) * 4)
        var steps: UInt64 = 0
        for bucket in 0..<buckets {
            var symbol = UInt64(try file.read(UInt32.self, at: start + 8 + bucket * 4))
            while symbol != 0 {
                steps += 1
                guard symbol < symbols, steps <= symbols else {
                    throw file.damaged("a chain of its hash table (DT_HASH) leads nowhere")
                }
                symbol = UInt64(try file.read(UInt32.self, at: start + 8 + (buckets + symbol) * 4))
            }
        }
        return symbols
    }

    /// Checks every symbol, and says whether the entry function of a module is among them.
    func findEntry(count: UInt64) throws(PluginError) -> Bool {
        let segments = dynamic.segments
        guard count <= limit else { throw file.damaged("\(count) symbols are used, and there is room for \(limit)") }
        var found = false
        for index in 0..<count {
            let symbol = offset + index * 24
            let name = UInt64(try file.read(UInt32.self, at: symbol))
            guard name < dynamic.strings.size else {
                throw file.damaged("the name of symbol \(index) lies outside of its string table")
            }
            let section = try file.read(UInt16.self, at: symbol + 6)
            if section == 0 || section >= 0xff00 { continue }  // not defined here, or not in memory
            let info = try file.read(UInt8.self, at: symbol + 4)
            let value = try file.read(UInt64.self, at: symbol + 8)
            let isFunction = info & 15 == 2
            switch info & 15 {
            case 2, 10:  // STT_FUNC, STT_GNU_IFUNC
                guard segments.isExecutable(value) else {
                    throw file.damaged("symbol \(index) is a function at address \(value), where no code is")
                }
            case 6:  // STT_TLS: relative to the thread-local data
                guard value <= segments.threadLocal?.memorySize ?? 0 else {
                    throw file.damaged("symbol \(index) lies outside of its thread-local data")
                }
            default:
                guard value <= segments.end else { throw file.damaged("symbol \(index) lies outside of it") }
            }
            // Global or weak, of default or protected visibility: what dlsym finds.
            let visibility = try file.read(UInt8.self, at: symbol + 5) & 3
            let isVisible = [1, 2].contains(info >> 4) && [0, 3].contains(visibility)
            if isFunction, isVisible, file.isString(entrySymbol, at: dynamic.strings.offset + name) {
                found = true
            }
        }
        return found
    }
}

/// PLUGIN_ENTRY_SYMBOL of the C header, as a text that can be compared without an allocation.
private let entrySymbol: StaticString = "plugin_module_entry"
