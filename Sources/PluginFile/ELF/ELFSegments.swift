import PluginABI

/// A program header.
struct ELFSegment {
    let type: UInt32
    let flags: UInt32
    let offset: UInt64
    let address: UInt64
    let fileSize: UInt64
    let memorySize: UInt64
    let alignment: UInt64

    var isExecutable: Bool { flags & 1 != 0 }
    var isWritable: Bool { flags & 2 != 0 }
    /// The address after the bytes from the file. In a checked PT_LOAD, the sum does not overflow.
    var fileEnd: UInt64 { address &+ fileSize }
    var memoryEnd: UInt64 { address &+ memorySize }
}

/// The segments of the file: the parts that are mapped, and their positions in memory.
struct ELFSegments {
    let file: ELFBytes
    private(set) var all: [ELFSegment] = []
    /// The PT_LOADs: ascending, not overlapping, completely inside the file.
    private(set) var loads: [ELFSegment] = []
    private(set) var dynamic: ELFSegment?
    private(set) var threadLocal: ELFSegment?

    /// The maximum number of bytes of memory of a module.
    private static let memoryLimit: UInt64 = 1 << 32

    /// The maximum number of notes that are searched for the build id, which linkers put first. The limit is needed
    /// because note segments can overlap.
    private static let noteLimit = 1024

    /// The number of bytes of memory that the image takes.
    var mappedSize: UInt64 { loads[loads.count - 1].memoryEnd - loads[0].address }
    var end: UInt64 { loads[loads.count - 1].memoryEnd }

    init(_ file: ELFBytes) throws(PluginError) {
        self.file = file
        let header = try ELFHeader(file)
        for index in 0..<header.programHeaderCount {
            let at = header.programHeaders + index * 56
            all.append(
                ELFSegment(
                    type: try file.read(UInt32.self, at: at), flags: try file.read(UInt32.self, at: at + 4),
                    offset: try file.read(UInt64.self, at: at + 8), address: try file.read(UInt64.self, at: at + 16),
                    fileSize: try file.read(UInt64.self, at: at + 32),
                    memorySize: try file.read(UInt64.self, at: at + 40),
                    alignment: try file.read(UInt64.self, at: at + 48)))
        }
        for segment in all where segment.type == 1 { try appendLoad(segment) }
        try file.check(!loads.isEmpty, else: "it has no part that can be loaded (PT_LOAD)")
        let size = mappedSize
        try file.check(
            size <= Self.memoryLimit,
            invalid: "needs \(size) bytes of memory; at most \(Self.memoryLimit) are accepted.")
        for segment in all { try check(segment, header) }
        try file.check(dynamic != nil, invalid: "has no dynamic section (PT_DYNAMIC): it is not a shared library.")
    }

    private mutating func appendLoad(_ load: ELFSegment) throws(PluginError) {
        try file.check(
            load.fileSize <= load.memorySize,
            else: "a segment has \(load.fileSize) bytes in the file, but only \(load.memorySize) in memory")
        try ELFHeader.checkEnd(file, saturating(1, times: load.fileSize, plus: load.offset))
        try file.check(
            saturating(1, times: load.memorySize, plus: load.address) < UInt64(Int64.max),
            else: "a segment of \(load.memorySize) bytes at address \(load.address) exceeds the address space")
        // 4096 is the smallest page size of all supported machines.
        let alignment = load.alignment
        try file.check(
            alignment.nonzeroBitCount == 1 && alignment >= 4096 && alignment <= 1 << 30
                && (load.address &- load.offset) % alignment == 0,
            else: "a segment at byte \(load.offset), address \(load.address) does not match its alignment \(alignment)")
        let isBehind = load.address >= loads.last?.memoryEnd ?? 0
        try file.check(isBehind, else: "its segments overlap or are not in order")
        loads.append(load)
    }

    private mutating func check(_ segment: ELFSegment, _ header: ELFHeader) throws(PluginError) {
        let isLoaded = segment.fileSize == 0 || fileOffset(segment.address, segment.fileSize) == segment.offset
        switch segment.type {
        case 2:  // PT_DYNAMIC
            let isNew = dynamic == nil
            try file.check(isNew, else: "it has two dynamic sections")
            let load = load(holding: segment.address, segment.fileSize)
            guard let load, isLoaded, segment.fileSize >= 16, load.isWritable || !segment.isWritable else {
                throw file.damaged("its dynamic section is outside the loaded segments")
            }
            dynamic = segment
        case 6:  // PT_PHDR
            let isThere = fileOffset(segment.address, segment.memorySize) == header.programHeaders
            try file.check(isThere, else: "its program headers are not at the address that PT_PHDR states")
        case 7:  // PT_TLS
            try file.check(
                segment.fileSize <= segment.memorySize && segment.memorySize <= 1 << 30 && segment.alignment <= 4096
                    && segment.alignment.nonzeroBitCount <= 1 && isLoaded,
                else: "its thread-local data is outside the loaded segments")
            threadLocal = segment
        case 4, 0x6474_e550, 0x6474_e553:  // PT_NOTE, PT_GNU_EH_FRAME, PT_GNU_PROPERTY
            try file.check(
                isLoaded, else: "a part that its program headers describe (type \(segment.type)) is not loaded")
        case 0x6474_e552:  // PT_GNU_RELRO, which may be rounded up to the end of a page
            let load = load(containing: segment.address)
            let isData =
                (segment.memorySize == 0 || load?.isWritable == true) && segment.memorySize <= mappedSize
                && segment.memoryEnd <= (load?.memoryEnd ?? end) + 65536
            try file.check(isData, else: "the part to be protected (PT_GNU_RELRO) is not within one writable segment")
        default: break
        }
    }

    /// Returns the PT_LOAD whose memory contains an address. Takes logarithmic time.
    func load(containing address: UInt64) -> ELFSegment? {
        var low = 0
        var high = loads.count
        while low < high {
            let middle = (low + high) / 2
            if loads[middle].memoryEnd <= address { low = middle + 1 } else { high = middle }
        }
        return low < loads.count && loads[low].address <= address ? loads[low] : nil
    }

    /// Returns the PT_LOAD whose memory contains all of the `size` bytes at `address`.
    func load(holding address: UInt64, _ size: UInt64) -> ELFSegment? {
        guard let load = load(containing: address), size <= load.memoryEnd - address else { return nil }
        return load
    }

    /// Returns the offset in the file from which the `size` bytes at `address` are loaded; `nil` unless all of them
    /// come from the file.
    func fileOffset(_ address: UInt64, _ size: UInt64) -> UInt64? {
        guard let load = load(containing: address), address <= load.fileEnd else { return nil }
        return size <= load.fileEnd - address ? load.offset + (address - load.address) : nil
    }

    /// Returns how many bytes at `address` and after it come from the file.
    func bytesInFile(from address: UInt64) -> UInt64 {
        guard let load = load(containing: address), address < load.fileEnd else { return 0 }
        return load.fileEnd - address
    }

    func isExecutable(_ address: UInt64) -> Bool { load(containing: address)?.isExecutable == true }

    /// Returns the build id from the linker, in hexadecimal; `nil` if there is none.
    func buildID() throws(PluginError) -> String? {
        var budget = Self.noteLimit
        for note in all where note.type == 4 {
            var at = note.offset
            let end = saturating(1, times: note.fileSize, plus: note.offset)
            while at < end, end - at >= 12, file.contains(at, 12), budget > 0 {
                budget -= 1
                let (nameSize, size) = (try file.word(at: at), try file.word(at: at + 4))
                let content = at + 12 + (nameSize + 3) / 4 * 4
                guard file.contains(content, size) else { break }
                if try file.word(at: at + 8) == 3, file.isString("GNU", at: at + 12), size <= 64 {
                    return file.bytes(content, size).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
                }
                at = content + (size + 3) / 4 * 4
            }
        }
        return nil
    }
}
