package import PluginABI

/// The sections of a program or a library, found in the section headers of its file.
///
/// Section headers are not part of the memory of an image, and the file may have been replaced since it was loaded.
/// Compare parts of the file with the memory before using addresses from it.
package struct ELFSections {
    /// A section that is part of the memory of the image.
    package struct Section: Sendable, Equatable {
        /// The address, relative to the base address of the image.
        package let address: UInt64
        /// The size in bytes.
        package let size: UInt64
    }

    /// A section with content in the file.
    struct Part {
        /// The number of the section's header.
        let index: UInt64
        let isInMemory: Bool
        let address: UInt64
        let offset: UInt64
        let size: UInt64
    }

    /// How many sections a file may have. Linked files have fewer than a hundred.
    private static let sectionLimit: UInt64 = 1 << 16

    private let file: ELFBytes
    private let header: ELFHeader

    /// Reads the header of the file.
    ///
    /// - Parameter isForeign: Whether the file may be for another machine. Otherwise, it may be a program.
    /// - Throws: `invalidFile`, stating what is wrong.
    package init(_ file: ELFBytes, forAnyMachine isForeign: Bool = false) throws(PluginError) {
        self.file = file
        header = try ELFHeader(file, ofLoadedImage: !isForeign, forAnyMachine: isForeign)
        let count = header.sectionHeaderCount
        try file.check(
            count <= Self.sectionLimit,
            else: "it has \(count) sections, and at most \(Self.sectionLimit) are accepted")
    }

    /// Whether the file has no section headers.
    package var isEmpty: Bool { header.sectionHeaderCount == 0 }
    var count: UInt64 { header.sectionHeaderCount }
    /// The offset of the section headers.
    var start: UInt64 { header.sectionHeaders }

    /// The name of the processor that the file is for; `nil` if it is this machine's.
    package var foreignMachine: String? {
        header.machine == ELFImage.thisMachine ? nil : ELFImage.name(ofMachine: header.machine)
    }

    /// Returns whether these are the program headers of the file.
    package func hasProgramHeaders(_ headers: UnsafeRawBufferPointer) -> Bool {
        UInt64(headers.count) == header.programHeaderCount * 56 && hasBytes(headers, at: header.programHeaders)
    }

    /// Returns whether the file has these bytes at an offset.
    package func hasBytes(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) -> Bool {
        file.contains(offset, UInt64(bytes.count)) && file.bytes(offset, UInt64(bytes.count)).elementsEqual(bytes)
    }

    /// The table of the names of sections: the number of its section, and its extent in the file.
    var names: (index: UInt64, offset: UInt64, size: UInt64) {
        get throws(PluginError) {
            var index = UInt64(try file.read(UInt16.self, at: 62))
            // With 65,280 sections or more, the first section contains the index.
            if index == 0xffff { index = try file.word(at: header.sectionHeaders + 40) }
            try file.check(index < header.sectionHeaderCount, else: "it has no section with the names of its sections")
            let names = header.sectionHeaders + index * 64
            let (start, size) = (try file.read(UInt64.self, at: names + 24), try file.read(UInt64.self, at: names + 32))
            try file.check(file.contains(start, size), else: "the names of its sections are outside the file")
            return (index, start, size)
        }
    }

    /// Returns the sections of this name that are part of the memory of the image and have content in the file.
    ///
    /// - Throws: `invalidFile` if the table of names is not in the file.
    package func loaded(named name: StaticString) throws(PluginError) -> [Section] {
        try all(named: name).filter(\.isInMemory).map { Section(address: $0.address, size: $0.size) }
    }

    /// Returns the sections of this name that have content in the file. Their extents have not been checked.
    ///
    /// - Throws: `invalidFile` if the table of names is not in the file.
    func all(named name: StaticString) throws(PluginError) -> [Part] {
        guard !isEmpty else { return [] }
        let names = try names
        var parts: [Part] = []
        for index in 0..<header.sectionHeaderCount {
            let offset = try file.word(at: header.sectionHeaders + index * 64)
            guard offset < names.size, file.isString(name, at: names.offset + offset), let part = try part(index) else {
                continue
            }
            parts.append(part)
        }
        return parts
    }

    /// Returns the section with this number; `nil` if it has no content in the file.
    private func part(_ index: UInt64) throws(PluginError) -> Part? {
        let at = header.sectionHeaders + index * 64
        guard try file.word(at: at + 4) == 1 else { return nil }  // SHT_PROGBITS
        return Part(
            index: index, isInMemory: try file.word(at: at + 8) & 2 != 0,  // SHF_ALLOC
            address: try file.read(UInt64.self, at: at + 16), offset: try file.read(UInt64.self, at: at + 24),
            size: try file.read(UInt64.self, at: at + 32))
    }

    /// Checks that a section is inside the file, and shares no bytes with the headers or with other sections.
    ///
    /// - Throws: `invalidFile` if it is not.
    func checkExtent(of part: Part) throws(PluginError) {
        try file.check(
            file.contains(part.offset, part.size),
            else: "its seal ends at byte \(saturating(1, times: part.size, plus: part.offset)), but it has only "
                + "\(file.count) bytes")
        func overlaps(_ offset: UInt64, _ size: UInt64) -> Bool {
            part.size > 0 && size > 0 && part.offset < saturating(1, times: size, plus: offset)
                && offset < part.offset + part.size
        }
        var isFree =
            !overlaps(0, 64) && !overlaps(header.programHeaders, header.programHeaderCount * 56)
            && !overlaps(header.sectionHeaders, header.sectionHeaderCount * 64)
        for index in 0..<header.sectionHeaderCount where isFree && index != part.index {
            let at = header.sectionHeaders + index * 64
            let type = try file.word(at: at + 4)
            if type == 0 || type == 8 { continue }  // SHT_NULL and SHT_NOBITS have no bytes in the file.
            isFree = !overlaps(try file.read(UInt64.self, at: at + 24), try file.read(UInt64.self, at: at + 32))
        }
        try file.check(isFree, else: "its seal overlaps another part of the file")
    }
}
