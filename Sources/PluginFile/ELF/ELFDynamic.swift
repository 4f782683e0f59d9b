import PluginABI
import Synchronization

/// The dynamic section: the tables that the dynamic linker will follow. Each table is checked to be inside the file.
struct ELFDynamic {
    /// The tags that this type reads, with the numbers of the ELF specification. A case without a number has the number
    /// of the previous case plus one.
    enum Tag: UInt64 {
        case needed = 1
        case pltRelocationSize, pltGOT, hash, strings, symbols, relocations, relocationsSize, relocationEntry,
            stringsSize
        case symbolEntry, initFunction, finiFunction, soname, rpath
        case pltRelocationType = 20
        case textRelocations = 22
        case pltRelocations
        case initArray = 25
        case finiArray, initArraySize, finiArraySize, runpath, flags
        case relativeSize = 35
        case relatives, relativeEntry
        case gnuHash = 0x6fff_fef5
        case versions = 0x6fff_fff0
        case relativeCount = 0x6fff_fff9
        case flags1 = 0x6fff_fffb
        case definitions, definitionCount, requirements, requirementCount
        case auxiliary = 0x7fff_fffd
        case filter = 0x7fff_ffff
    }

    /// A table in the file.
    struct Table {
        let address: UInt64
        let offset: UInt64
        let size: UInt64
        var end: UInt64 { offset + size }
    }

    let file: ELFBytes
    let segments: ELFSegments
    private var values: [Tag: UInt64] = [:]
    private var neededOffsets: [UInt64] = []
    let strings: Table

    /// The maximum number of libraries that a file may need.
    static let neededLimit = 1024

    init(_ file: ELFBytes) throws(PluginError) {
        self.file = file
        segments = try ELFSegments(file)
        guard let section = segments.dynamic else { throw file.damaged("it has no dynamic section") }
        var values: [Tag: UInt64] = [:]
        var at = section.offset
        let end = section.offset + section.fileSize
        while true {
            try file.check(at < end && end - at >= 16, else: "its dynamic section is not terminated (DT_NULL)")
            let tag = try file.read(UInt64.self, at: at)
            let value = try file.read(UInt64.self, at: at + 8)
            at += 16
            if tag == 0 { break }
            guard let tag = Tag(rawValue: tag) else { continue }
            if tag == .needed {
                neededOffsets.append(value)
                let isMore = neededOffsets.count > Self.neededLimit
                try file.check(!isMore, else: "it needs more than \(Self.neededLimit) libraries")
            } else {
                let isNew = values.updateValue(value, forKey: tag) == nil || tag == .auxiliary || tag == .filter
                try file.check(isNew, else: "its dynamic section has two entries for \(tag)")
            }
        }
        guard let address = values[.strings], let size = values[.stringsSize], size > 0,
            let offset = segments.fileOffset(address, size), try file.read(UInt8.self, at: offset + size - 1) == 0
        else { throw file.damaged("its table of names (DT_STRTAB, DT_STRSZ) is outside the loaded segments") }
        strings = Table(address: address, offset: offset, size: size)
        self.values = values
        try checkEntrySizes()
    }

    subscript(tag: Tag) -> UInt64? { values[tag] }

    /// Whether the file is a position-independent executable (DF_1_PIE).
    var isProgram: Bool { (values[.flags1] ?? 0) & 0x0800_0000 != 0 }
    /// Whether code may be relocated as well (DT_TEXTREL, DF_TEXTREL).
    var relocatesText: Bool { values[.textRelocations] != nil || (values[.flags] ?? 0) & 4 != 0 }

    /// Returns the table given by the tags of its address and of its size in bytes, which must be a multiple of `unit`;
    /// `nil` if there is no such table.
    func table(_ address: Tag, _ size: Tag, unit: UInt64) throws(PluginError) -> Table? {
        guard values[address] != nil || (values[size] ?? 0) != 0 else { return nil }
        guard let start = values[address], let bytes = values[size], bytes % unit == 0 else {
            throw file.damaged("its dynamic section lacks a valid size or address for \(address)")
        }
        if bytes == 0 { return nil }
        return try table(address, at: start, size: bytes)
    }

    /// Returns the table of `size` bytes at an address in memory. The bytes must come from the file.
    func table(_ name: Tag, at address: UInt64, size: UInt64) throws(PluginError) -> Table {
        guard let offset = segments.fileOffset(address, size) else {
            throw file.damaged("its table \(name) (\(size) bytes at address \(address)) is outside the loaded segments")
        }
        return Table(address: address, offset: offset, size: size)
    }

    func name(at offset: UInt64) throws(PluginError) -> String {
        try file.check(offset < strings.size, else: "a name is outside the string table")
        return try file.string(at: strings.offset + offset, end: strings.end)
    }

    /// Returns the names of the needed libraries without duplicates, in order.
    func needed() throws(PluginError) -> [String] {
        var names: [String] = []
        names.reserveCapacity(neededOffsets.count)
        var offsets: Set<UInt64> = []
        var seen: Set<PathKey> = []
        for offset in neededOffsets where offsets.insert(offset).inserted {
            let name = Self.shared(try name(at: offset))
            if seen.insert(PathKey(name)).inserted { names.append(name) }
        }
        return names
    }

    /// Returns an equal text in memory that all files share, since most modules need the same libraries.
    ///
    /// Only ASCII texts are shared, since equal ASCII texts have the same bytes. Their length and number are limited,
    /// since files can contain any names, and shared memory is never freed.
    private static func shared(_ name: String) -> String {
        guard name.utf8.count <= 64, name.utf8.allSatisfy({ $0 < 0x80 }) else { return name }
        return sharedNames.withLock { names in
            names.count < 4096 ? names.insert(name).memberAfterInsert : name
        }
    }
    private static let sharedNames = Mutex<Set<String>>([])

    func soname() throws(PluginError) -> String? {
        for tag in [Tag.auxiliary, .filter] {
            if let offset = values[tag] { _ = try name(at: offset) }
        }
        guard let offset = values[.soname] else { return nil }
        return try name(at: offset)
    }

    /// Returns the folders that are searched for needed libraries: those of DT_RUNPATH or, without one, of DT_RPATH.
    func runpath() throws(PluginError) -> [String] {
        guard let offset = values[.runpath] ?? values[.rpath] else { return [] }
        return try name(at: offset).split(separator: ":").map(String.init)
    }

    /// Checks the entries that make the dynamic linker end the process if they are missing or wrong.
    private func checkEntrySizes() throws(PluginError) {
        let expected: [(tag: Tag, table: Tag, size: UInt64)] = [
            (.symbolEntry, .symbols, 24), (.relocationEntry, .relocations, 24), (.relativeEntry, .relatives, 8),
            (.pltRelocationType, .pltRelocations, 7),
        ]
        for (tag, table, size) in expected where values[table] != nil && values[tag] != size {
            throw file.damaged("its dynamic section has the value \(values[tag] ?? 0) for \(tag), expected \(size)")
        }
        try file.check(
            values[.versions] != nil || values[.definitions] == nil && values[.requirements] == nil,
            else: "it has symbol versions, but no table that assigns them to symbols (DT_VERSYM)")
    }

    /// Checks that the functions that are called at load and at exit are in executable memory.
    func checkFunctions() throws(PluginError) {
        for tag in [Tag.initFunction, .finiFunction] {
            guard let address = values[tag] else { continue }
            try file.check(segments.isExecutable(address), else: "its \(tag) at address \(address) is not code")
        }
        guard let address = values[.pltGOT] else { return }
        let isData = segments.load(containing: address)?.isWritable == true
        try file.check(isData, else: "its \(Tag.pltGOT) at address \(address) is not data")
    }
}
