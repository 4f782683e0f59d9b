package import PluginABI

/// The sections of a program or a library that the process has loaded, found in the section headers of its file.
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

    /// How many sections a file may have. Linked files have fewer than a hundred.
    private static let sectionLimit: UInt64 = 1 << 16

    private let file: ELFBytes
    private let header: ELFHeader

    /// Reads the header of the file.
    ///
    /// - Throws: `invalidFile`, stating what is wrong.
    package init(_ file: ELFBytes) throws(PluginError) {
        self.file = file
        header = try ELFHeader(file, ofLoadedImage: true)
        let count = header.sectionHeaderCount
        try file.check(
            count <= Self.sectionLimit,
            else: "it has \(count) sections, and at most \(Self.sectionLimit) are accepted")
    }

    /// Whether the file has no section headers.
    package var isEmpty: Bool { header.sectionHeaderCount == 0 }

    /// Returns whether these are the program headers of the file.
    package func hasProgramHeaders(_ headers: UnsafeRawBufferPointer) -> Bool {
        UInt64(headers.count) == header.programHeaderCount * 56 && hasBytes(headers, at: header.programHeaders)
    }

    /// Returns whether the file has these bytes at an offset.
    package func hasBytes(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) -> Bool {
        file.contains(offset, UInt64(bytes.count)) && file.bytes(offset, UInt64(bytes.count)).elementsEqual(bytes)
    }

    /// Returns the sections with a name that are part of the memory of the image and have content in the file.
    ///
    /// - Throws: `invalidFile` if the table of names is not in the file.
    package func loaded(named name: StaticString) throws(PluginError) -> [Section] {
        guard !isEmpty else { return [] }
        var index = UInt64(try file.read(UInt16.self, at: 62))
        // With 65,280 sections or more, the first section contains the index.
        if index == 0xffff { index = try file.word(at: header.sectionHeaders + 40) }
        try file.check(index < header.sectionHeaderCount, else: "it has no section with the names of its sections")
        let names = header.sectionHeaders + index * 64
        let (start, size) = (try file.read(UInt64.self, at: names + 24), try file.read(UInt64.self, at: names + 32))
        try file.check(file.contains(start, size), else: "the names of its sections are outside the file")
        var sections: [Section] = []
        for index in 0..<header.sectionHeaderCount {
            let at = header.sectionHeaders + index * 64
            let offset = try file.word(at: at)
            let isInMemory = try file.word(at: at + 8) & 2 != 0  // SHF_ALLOC
            guard try file.word(at: at + 4) == 1, isInMemory, offset < size, file.isString(name, at: start + offset)
            else { continue }
            sections.append(
                Section(
                    address: try file.read(UInt64.self, at: at + 16), size: try file.read(UInt64.self, at: at + 32)))
        }
        return sections
    }
}
