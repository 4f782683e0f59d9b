import PluginABI

/// One program header.
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
    /// Neither sum overflows in a PT_LOAD that was checked.
    var fileEnd: UInt64 { address &+ fileSize }
    var memoryEnd: UInt64 { address &+ memorySize }
}

/// The parts of the file that are mapped, and where everything lies in memory.
struct ELFSegments {
    let file: ELFBytes
    private(set) var all: [ELFSegment] = []
    /// The PT_LOADs: ascending, not overlapping, wholly inside the file.
    private(set) var loads: [ELFSegment] = []
    private(set) var dynamic: ELFSegment?
    private(set) var threadLocal: ELFSegment?

    /// More memory than a module can mean to take.
    private static let memoryLimit: UInt64 = 1 << 32

    /// How many notes are looked through for the build id, which linkers put first. Segments of notes can overlap.
    private static let noteLimit = 1024

    /// How much memory the image takes.
    var mappedSize: UInt64 { loads[loads.count - 1].memoryEnd - loads[0].address }
    var end: UInt64 { loads[loads.count - 1].memoryEnd }

    init(_ file: ELFBytes, _ header: ELFHeader) throws(PluginError) {
        self.file = file
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
        guard !loads.isEmpty else { throw file.damaged("it has no part that can be loaded (PT_LOAD)") }
        guard mappedSize <= Self.memoryLimit else {
            throw file.invalid("would take \(mappedSize) bytes of memory; at most \(Self.memoryLimit) are accepted.")
        }
        for segment in all { try check(segment, header) }
        guard dynamic != nil else {
            throw file.invalid("has no dynamic section (PT_DYNAMIC): it is not a shared library.")
        }
    }

    private mutating func appendLoad(_ load: ELFSegment) throws(PluginError) {
        guard load.fileSize <= load.memorySize else {
            throw file.damaged("a segment has \(load.fileSize) bytes in the file and \(load.memorySize) in memory")
        }
        let end = saturating(1, times: load.fileSize, plus: load.offset)
        guard end <= file.count else { throw ELFHeader.cutShort(file, expected: end) }
        guard saturating(1, times: load.memorySize, plus: load.address) < UInt64(Int64.max) else {
            throw file.damaged("a segment at address \(load.address) is \(load.memorySize) bytes long")
        }
        // 4096 is the smallest page of every machine this runs on.
        guard load.alignment.nonzeroBitCount == 1, load.alignment >= 4096, load.alignment <= 1 << 30,
            (load.address &- load.offset) % load.alignment == 0
        else {
            throw file.damaged(
                "a segment at byte \(load.offset), address \(load.address) does not fit its alignment \(load.alignment)"
            )
        }
        guard load.address >= loads.last?.memoryEnd ?? 0 else {
            throw file.damaged("its segments overlap or are not in order")
        }
        loads.append(load)
    }

    private mutating func check(_ segment: ELFSegment, _ header: ELFHeader) throws(PluginError) {
        switch segment.type {
        case 2:  // PT_DYNAMIC
            guard dynamic == nil else { throw file.damaged("it has two dynamic sections") }
            let load = load(holding: segment.address, segment.fileSize)
            guard let load, fileOffset(segment.address, segment.fileSize) == segment.offset, segment.fileSize >= 16,
                load.isWritable || !segment.isWritable
            else { throw file.damaged("its dynamic section lies outside of what is loaded") }
            dynamic = segment
        case 6:  // PT_PHDR
            guard fileOffset(segment.address, segment.memorySize) == header.programHeaders else {
                throw file.damaged("its program headers are not where they say they are")
            }
        case 7:  // PT_TLS
            guard segment.fileSize <= segment.memorySize, segment.memorySize <= 1 << 30,
                segment.alignment <= 4096, segment.alignment.nonzeroBitCount <= 1,
                segment.fileSize == 0 || fileOffset(segment.address, segment.fileSize) == segment.offset
            else { throw file.damaged("its thread-local data lie outside of what is loaded") }
            threadLocal = segment
        case 4, 0x6474_e550, 0x6474_e553:  // PT_NOTE, PT_GNU_EH_FRAME, PT_GNU_PROPERTY
            guard segment.fileSize == 0 || fileOffset(segment.address, segment.fileSize) == segment.offset else {
                throw file.damaged(
                    "a table of its program headers (type \(segment.type)) lies outside of what is loaded")
            }
        case 0x6474_e552:  // PT_GNU_RELRO; it may be rounded up to the end of a page
            let load = load(containing: segment.address)
            guard segment.memorySize == 0 || load?.isWritable == true, segment.memorySize <= mappedSize,
                segment.memoryEnd <= (load?.memoryEnd ?? end) + 65536
            else { throw file.damaged("what it wants to protect (PT_GNU_RELRO) lies outside of its data") }
        default: break
        }
    }

    /// The PT_LOAD whose memory has that address. Logarithmic.
    func load(containing address: UInt64) -> ELFSegment? {
        var low = 0
        var high = loads.count
        while low < high {
            let middle = (low + high) / 2
            if loads[middle].memoryEnd <= address { low = middle + 1 } else { high = middle }
        }
        return low < loads.count && loads[low].address <= address ? loads[low] : nil
    }

    /// The PT_LOAD whose memory has all of the `size` bytes from `address` on.
    func load(holding address: UInt64, _ size: UInt64) -> ELFSegment? {
        guard let load = load(containing: address), size <= load.memoryEnd - address else { return nil }
        return load
    }

    /// Where in the file those bytes of memory come from; nil where they come from nowhere, or not all of them.
    func fileOffset(_ address: UInt64, _ size: UInt64) -> UInt64? {
        guard let load = load(containing: address), address <= load.fileEnd, size <= load.fileEnd - address else {
            return nil
        }
        return load.offset + (address - load.address)
    }

    /// How many bytes from `address` on come from the file.
    func bytesInFile(from address: UInt64) -> UInt64 {
        guard let load = load(containing: address), address < load.fileEnd else { return 0 }
        return load.fileEnd - address
    }

    func isExecutable(_ address: UInt64) -> Bool { load(containing: address)?.isExecutable == true }

    /// The build id that the linker noted, in hexadecimal; nil if there is none.
    func buildID() throws(PluginError) -> String? {
        var budget = Self.noteLimit
        for note in all where note.type == 4 {
            var at = note.offset
            let end = saturating(1, times: note.fileSize, plus: note.offset)
            while at < end, end - at >= 12, file.contains(at, 12), budget > 0 {
                budget -= 1
                let nameSize = UInt64(try file.read(UInt32.self, at: at))
                let size = UInt64(try file.read(UInt32.self, at: at + 4))
                let content = at + 12 + (nameSize + 3) / 4 * 4
                guard file.contains(content, size) else { break }
                if try file.read(UInt32.self, at: at + 8) == 3, file.isString("GNU", at: at + 12), size <= 64 {
                    return file.bytes(content, size).map {
                        ($0 < 16 ? "0" : "") + String($0, radix: 16)
                    }.joined()
                }
                at = content + (size + 3) / 4 * 4
            }
        }
        return nil
    }
}
