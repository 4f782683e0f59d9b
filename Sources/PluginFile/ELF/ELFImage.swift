package import PluginABI

/// The description of a shared library from its ELF header and dynamic section, read without running any of its code.
///
/// The dynamic linker trusts the tables of a file, and crashes if they are wrong. Therefore this type first checks
/// everything that the linker will follow: that the file is complete, that it is for this machine, and that each table,
/// name, symbol and relocation is at a valid position. A file that passes can still be wrong, and must be trusted like
/// any other code.
package struct ELFImage: Sendable {
    /// DT_SONAME: the name under which other libraries need this one.
    package private(set) var soname: String?
    /// DT_NEEDED: the names of the libraries that this one needs, in order.
    package private(set) var needed: [String] = []
    /// The folders that are searched for needed libraries. `$ORIGIN` is not replaced.
    package private(set) var runpath: [String] = []
    /// Whether the library exports the entry function of a module.
    package private(set) var exportsEntry = false
    /// The build id that the linker has written, in hexadecimal.
    package private(set) var buildID: String?
    /// The seal; `nil` if the library has none.
    package private(set) var seal: ManifestSeal?
    /// The number of bytes of memory that the library takes when it is mapped.
    package private(set) var mappedSize = 0

    /// Reads a file that is completely in memory. Takes time and memory in proportion to its size, for any content.
    ///
    /// - Parameters:
    ///   - bytes: The file. Used only during the call, and must not change during the call.
    ///   - path: The path of the file in errors.
    /// - Throws: `invalidFile`, stating what is wrong.
    package init(reading bytes: UnsafeRawBufferPointer, path: String) throws(PluginError) {
        try self.init(reading: ELFBytes(bytes: bytes, path: path))
    }

    /// Reads a file of which only the needed parts may be in memory.
    ///
    /// - Throws: `invalidFile`, stating what is wrong.
    package init(reading file: ELFBytes) throws(PluginError) {
        let dynamic = try ELFDynamic(file)
        let segments = dynamic.segments
        let symbols = try ELFSymbols(dynamic)
        let relocations = try ELFRelocations(dynamic)
        let symbolCount = symbols.count ?? relocations.symbolCount
        try file.check(
            relocations.symbolCount <= symbolCount,
            else: "a relocation refers to symbol \(relocations.symbolCount - 1), but there are only \(symbolCount)")
        try dynamic.checkFunctions()
        needed = try dynamic.needed()
        exportsEntry = try symbols.findEntry(count: symbolCount)
        try ELFVersions.check(dynamic, needed: needed, symbolCount: symbolCount)
        // Some libraries, such as libc, contain the name of the dynamic linker, as programs do, but are not marked PIE.
        let isProgram =
            dynamic.isProgram
            || !exportsEntry && dynamic[.soname] == nil && segments.all.contains(where: { $0.type == 3 })
        try file.check(!isProgram, invalid: ELFHeader.isNoLibrary("an executable"))
        soname = try dynamic.soname()
        runpath = try dynamic.runpath()
        buildID = try segments.buildID()
        mappedSize = Int(segments.mappedSize)
        seal = try ManifestSeal(of: file, ELFSections(file))
    }

    /// An empty image that stands for the program itself. Nothing needs to be checked in it, because the program is
    /// already running, with the only Swift runtime of the process.
    package static let program = ELFImage()

    private init() {}

    /// Checks the tables from which everything else is found, in order to refuse a file before it is copied: the
    /// header, the program and section headers, the dynamic section, names, and the hash table of the symbols.
    ///
    /// - Throws: `invalidFile`, stating what is wrong.
    package static func checkTables(of file: ELFBytes) throws(PluginError) {
        let dynamic = try ELFDynamic(file)
        _ = try (dynamic.needed(), dynamic.runpath(), dynamic.soname())
        _ = try ELFSymbols(dynamic)
    }

    /// Checks that the entry function of a module is exported.
    ///
    /// - Throws: `invalidFile` if it is not.
    package func requireEntry(path: String) throws(PluginError) {
        guard !exportsEntry else { return }
        throw PluginError(
            .invalidFile,
            "\(path) is a shared library, but not a module: it does not export the function plugin_module_entry. In Swift "
                + "it must be public and marked @_cdecl(\"plugin_module_entry\"), in C PLUGIN_MODULE_EXPORT.")
    }
}
