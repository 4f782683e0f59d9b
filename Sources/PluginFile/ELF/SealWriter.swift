package import PluginABI

/// Adds seals to files that are already linked. It only appends: a section, the names of sections, and section headers.
/// Program headers and segments stay as they are; the ELF header is changed to refer to the new section headers.
package enum SealWriter {
    /// Returns the bytes of a file with a seal; the same bytes if it already has an equal one, or if the build has
    /// embedded the same manifest.
    ///
    /// - Parameters:
    ///   - bytes: The file, which must not change during the call.
    ///   - path: The path of the file in errors.
    /// - Throws: `invalidFile` if the file has no section headers, too many, or more than one seal; `sealMismatch` if
    ///   the build has embedded another manifest; the error of the seal if the build has embedded one that cannot be
    ///   read.
    package static func sealed(
        _ bytes: UnsafeRawBufferPointer, with seal: ManifestSeal, path: String
    ) throws(PluginError) -> [UInt8] {
        let file = ELFBytes(bytes: bytes, path: path)
        let sections = try ELFSections(file, forAnyMachine: true)
        let count = sections.count
        try file.check(
            count > 0,
            invalid: "has no section headers, so it cannot be sealed. Link it without --strip-section-headers.")
        try file.check(count < 0xff00 - 1, else: "it has \(count) sections, which are too many for one more")
        let found = try sections.all(named: ManifestSeal.section)
        try file.check(found.count <= 1, else: "it has \(found.count) seals, expected one at most")
        if found.first?.isInMemory == true {
            // The code refers to the bytes of an embedded seal, so they are never replaced, even if they are damaged.
            let embedded = try ManifestSeal(of: file, sections)
            if let difference = embedded?.difference(from: seal.manifest, nil, minor: seal.abiMinor) {
                throw PluginError(
                    .sealMismatch,
                    "The build has embedded a manifest in \(path) that is not that of its code, so it cannot be sealed: "
                        + "\(difference). Let the description refer to PLUGIN_MANIFEST, and build it again.")
            }
            return Array(bytes)
        }
        if let old = try? ManifestSeal(of: file, sections), old.hasSameContent(as: seal) { return Array(bytes) }

        var output = Array(bytes)
        func align() { output += repeatElement(0, count: (8 - output.count % 8) % 8) }
        func put<Number: FixedWidthInteger>(_ number: Number, at offset: Int) {
            withUnsafeBytes(of: number.littleEndian) { output.replaceSubrange(offset..<offset + $0.count, with: $0) }
        }
        align()
        let content = (offset: UInt64(output.count), size: UInt64(seal.bytes.count))
        output += seal.bytes

        let names = try sections.names
        let nameOfSeal = found.isEmpty ? names.size : nil
        let newNames = UInt64(output.count)
        if nameOfSeal != nil {
            output += file.bytes(names.offset, names.size)
            ManifestSeal.section.withUTF8Buffer { output += $0 }
            output.append(0)
        }
        align()
        let table = output.count
        output += file.bytes(sections.start, count * 64)
        let header: Int
        if let nameOfSeal {
            let ofNames = table + Int(names.index) * 64
            put(newNames, at: ofNames + 24)
            put(names.size + UInt64(ManifestSeal.section.utf8CodeUnitCount) + 1, at: ofNames + 32)
            header = output.count
            output += repeatElement(0, count: 64)
            put(UInt32(nameOfSeal), at: header)
        } else {
            header = table + Int(found[0].index) * 64
        }
        put(UInt32(1), at: header + 4)  // SHT_PROGBITS
        put(content.offset, at: header + 24)
        put(content.size, at: header + 32)
        put(UInt64(8), at: header + 48)
        put(UInt64(table), at: 40)
        put(UInt16(count + (nameOfSeal == nil ? 0 : 1)), at: 60)
        return output
    }
}
