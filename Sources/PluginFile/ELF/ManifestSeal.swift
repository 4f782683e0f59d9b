package import PluginABI

/// The seal of a library: a section with its manifest, which is read without running any of its code.
///
/// `plugin_abi/manifest.h` describes its layout. What it says is only a claim until the library is opened: the host
/// then compares it with the description that the entry function returns.
package struct ManifestSeal: Sendable {
    package let abiMajor: UInt16
    package let abiMinor: UInt16
    package let toolchain: String
    /// The text of the manifest.
    package let manifest: String
    /// The manifest with the types that the module derives from its code; `nil` if it derives none.
    package let typedManifest: String?
    /// Whether the build has embedded the manifest, as `PLUGIN_MANIFEST_FILE` does. Such a seal states only the
    /// manifest: its version and its toolchain are those of the header file, not of the description.
    package let isEmbedded: Bool

    /// The name of the section.
    static let section: StaticString = "pluginhost_manifest"
    private static let headerSize = UInt64(MemoryLayout<plugin_seal>.size)
    private static let toolchainLimit: UInt64 = 256

    /// - Parameters:
    ///   - toolchain: The toolchain that built the module; empty if it needs no Swift runtime.
    ///   - manifest: The text of the manifest, at most 1 MiB.
    ///   - typedManifest: The manifest with types, at most 1 MiB.
    package init(abiMinor: UInt16, toolchain: String, manifest: String, typedManifest: String?) {
        (abiMajor, self.abiMinor) = (UInt16(PLUGIN_ABI_MAJOR), abiMinor)
        (self.toolchain, self.manifest, self.typedManifest) = (toolchain, manifest, typedManifest)
        isEmbedded = false
    }

    /// Reads the seal of a file; `nil` if it has none.
    ///
    /// - Throws: `invalidFile`, stating what is wrong with the seal; `incompatible` for another major version of the
    ///   binary interface.
    package init?(of file: ELFBytes, _ sections: ELFSections) throws(PluginError) {
        let found = try sections.all(named: Self.section)
        guard let section = found.first else { return nil }
        try file.check(found.count == 1, else: "it has \(found.count) seals (sections \(Self.section)), expected one")
        try sections.checkExtent(of: section)
        isEmbedded = section.isInMemory
        let size = section.size
        try file.check(
            size >= Self.headerSize && size <= 3 << 20,
            else: "its seal has \(size) bytes, expected \(Self.headerSize) to \(3 << 20)")
        let header = try file.read(plugin_seal.self, at: section.offset)
        try file.check(
            header.magic == UInt64(PLUGIN_SEAL_MAGIC) && header.size == Self.headerSize,
            else: "its seal does not begin with PLUGIN_SEAL_MAGIC and the size of plugin_seal, \(Self.headerSize)")
        (abiMajor, abiMinor) = (header.abi_major, header.abi_minor)
        guard abiMajor == PLUGIN_ABI_MAJOR else {
            throw PluginError(
                .incompatible,
                "\(file.path) was built for version \(abiMajor).\(abiMinor) of the binary interface; this host has "
                    + "\(PLUGIN_ABI_MAJOR).\(PLUGIN_ABI_MINOR) and loads \(PLUGIN_ABI_MAJOR).x.")
        }
        let limit = UInt64(PLUGIN_MANIFEST_MAX_BYTES)
        try file.check(
            header.manifest_count > 0 && header.manifest_count <= limit && header.types_count <= limit
                && header.toolchain_count <= Self.toolchainLimit,
            else: "its seal counts \(header.manifest_count) bytes of the manifest, \(header.toolchain_count) of the "
                + "toolchain and \(header.types_count) of the manifest with types; accepted are 1 to \(limit), at most "
                + "\(Self.toolchainLimit) and at most \(limit)")
        let total = Self.headerSize + header.manifest_count + header.toolchain_count + header.types_count
        try file.check(
            total <= size && size - total < 8, else: "its seal has \(size) bytes, but its header counts \(total)")
        try file.check(
            file.bytes(section.offset + total, size - total).allSatisfy { $0 == 0 },
            else: "its seal has bytes other than zeros at its end")
        var at = section.offset + Self.headerSize
        func text(_ count: UInt64) throws(PluginError) -> String {
            defer { at += count }
            guard let text = String(validating: file.bytes(at, count), as: UTF8.self) else {
                throw file.damaged("a text in its seal is not UTF-8")
            }
            return text
        }
        manifest = try text(header.manifest_count)
        toolchain = try text(header.toolchain_count)
        let types = try text(header.types_count)
        typedManifest = types.isEmpty ? nil : types
    }

    /// The content of the section.
    var bytes: [UInt8] {
        let types = typedManifest ?? ""
        let header = plugin_seal(
            magic: UInt64(PLUGIN_SEAL_MAGIC), size: UInt32(Self.headerSize), abi_major: abiMajor, abi_minor: abiMinor,
            manifest_count: UInt64(manifest.utf8.count), toolchain_count: UInt64(toolchain.utf8.count),
            types_count: UInt64(types.utf8.count))
        return withUnsafeBytes(of: header, Array.init) + manifest.utf8 + toolchain.utf8 + types.utf8
    }

    /// Returns whether two seals have the same content.
    package func hasSameContent(as other: ManifestSeal) -> Bool { bytes == other.bytes }

    // MARK: - Comparing with the code

    /// Reads the manifest.
    ///
    /// - Parameters:
    ///   - withTypes: Whether the manifest with types is read, if the seal has one.
    ///   - path: The path of the file in errors.
    /// - Throws: `invalidManifest`.
    package func parsedManifest(withTypes: Bool = false, path: String) throws(PluginError) -> ModuleManifest {
        let text = withTypes ? typedManifest ?? manifest : manifest
        do throws(PluginError) {
            return try text.utf8Span.span.withUnsafeBytes { text throws(PluginError) in
                try ModuleManifest(parsing: text, abiMinor: abiMinor)
            }
        } catch {
            throw PluginError(error.code, "The manifest in the seal of \(path) was rejected. \(error.message)")
        }
    }

    /// Returns how the manifests of the seal and of the code differ; `nil` if they have the same content.
    ///
    /// - Parameters:
    ///   - text: The text of the manifest of the code.
    ///   - manifest: The same manifest, parsed; `nil` if only the texts are compared.
    ///   - minor: The minor version of the binary interface in the description.
    func difference(from text: String, _ manifest: ModuleManifest?, minor: UInt16) -> String? {
        if self.manifest.utf8.elementsEqual(text.utf8) { return nil }
        func parsed(_ text: String) -> ModuleManifest? {
            text.utf8Span.span.withUnsafeBytes { try? ModuleManifest(parsing: $0, abiMinor: minor) }
        }
        guard let sealed = parsed(self.manifest) else { return "the manifest in the seal is not valid" }
        guard let manifest = manifest ?? parsed(text) else { return "the manifest of the code is not valid" }
        guard sealed.name == manifest.name else {
            return "the seal names the module \(sealed.name), the code \(manifest.name)"
        }
        if sealed == manifest { return nil }
        func members(_ text: String) -> [String: Value] { (try? Value(jsonMessage: Array(text.utf8)))?.map ?? [:] }
        let (old, new) = (members(self.manifest), members(text))
        let keys = Set(old.keys).union(new.keys).filter { old[$0] != new[$0] }.sorted().prefix(8)
        return "the manifest of \(manifest.name) differs in \(keys.map { "“\($0.shortened)”" }.joined(separator: ", "))"
    }

    /// Checks that the seal and the description that the code returns say the same. Of a seal that the build has
    /// embedded, only the manifest is compared.
    ///
    /// - Parameters:
    ///   - minor: The minor version of the binary interface in the description.
    ///   - toolchain: The toolchain in the description.
    ///   - text: The text of the manifest in the description.
    ///   - manifest: The manifest in the description.
    ///   - path: The path of the file in errors.
    /// - Throws: `sealMismatch`.
    package func check(
        minor: UInt16, toolchain: String, text: String, manifest: ModuleManifest, path: String
    ) throws(PluginError) {
        func mismatch(_ what: String) -> PluginError {
            PluginError(
                .sealMismatch,
                "The seal of \(path) does not match its code: \(what). The file was changed after it was sealed, or "
                    + "its description does not refer to the embedded manifest (PLUGIN_MANIFEST, SEAL.manifest()). "
                    + "Build it again; if the build embeds no manifest, then seal it: pluginhost seal \(path)")
        }
        guard isEmbedded || minor == abiMinor else {
            throw mismatch("the seal is for version \(abiMajor).\(abiMinor), the description for \(abiMajor).\(minor)")
        }
        guard isEmbedded || self.toolchain.utf8.elementsEqual(toolchain.utf8) else {
            throw mismatch(
                "the seal names the toolchain “\(self.toolchain.shortened)”, the description “\(toolchain.shortened)”")
        }
        if let difference = difference(from: text, manifest, minor: minor) { throw mismatch(difference) }
    }
}
