package import PluginABI

/// What a shared library says about itself in its ELF header and dynamic section, without running any of it.
///
/// The dynamic linker trusts the tables of a file and dies of wrong ones. So everything it will follow is checked
/// here first: that the file is complete, made for this machine, and that each table, name, symbol and relocation lies
/// where it can lie. What passes can still be wrong; it is trusted as code is.
package struct ELFImage: Sendable {
    /// DT_SONAME: the name under which other libraries need this one.
    package private(set) var soname: String?
    /// DT_NEEDED: the names of the libraries that it needs, in order.
    package private(set) var needed: [String] = []
    /// The folders in which they are looked for, `$ORIGIN` not replaced.
    package private(set) var runpath: [String] = []
    /// Whether it exports the entry function of a module.
    package private(set) var exportsEntry = false
    /// The id that its linker gave it, in hexadecimal.
    package private(set) var buildID: String?
    /// How many bytes of memory it takes.
    package private(set) var mappedSize = 0

    /// Reads a file that was loaded as a whole. Takes time and memory in proportion to its size, whatever it contains.
    ///
    /// - Parameters:
    ///   - bytes: The file; used during the call only. Nobody may change it meanwhile.
    ///   - path: How errors call it.
    /// - Throws: `invalidFile`, with what is wrong with it.
    package init(reading bytes: UnsafeRawBufferPointer, path: String) throws(PluginError) {
        let file = ELFBytes(bytes: bytes, path: path)
        let dynamic = try ELFDynamic(file)
        let segments = dynamic.segments
        let symbols = try ELFSymbols(dynamic)
        let relocations = try ELFRelocations(dynamic)
        let symbolCount = symbols.count ?? relocations.symbolCount
        try file.check(
            relocations.symbolCount <= symbolCount,
            else: "a relocation names symbol \(relocations.symbolCount - 1) of \(symbolCount)")
        try dynamic.checkFunctions()
        let needed = try dynamic.needed()
        let exportsEntry = try symbols.findEntry(count: symbolCount)
        try ELFVersions.check(dynamic, needed: needed, symbolCount: symbolCount)
        // Some libraries carry the name of the dynamic linker as programs do, libc for one; they do not say PIE.
        let isProgram =
            dynamic.isProgram
            || !exportsEntry && dynamic[.soname] == nil && segments.all.contains(where: { $0.type == 3 })
        try file.check(!isProgram, invalid: ELFHeader.isNoLibrary("an executable"))
        soname = try dynamic.soname()
        self.needed = needed
        runpath = try dynamic.runpath()
        self.exportsEntry = exportsEntry
        buildID = try segments.buildID()
        mappedSize = Int(segments.mappedSize)
    }

    /// The image of the program itself, at which nobody looks: it runs already, on the one Swift runtime that it has.
    package static let program = ELFImage()

    private init() {}

    /// Checks the tables from which everything else is found, to refuse a file before it is copied: header, program and
    /// section headers, dynamic section, names, and the hash table of the symbols.
    ///
    /// - Throws: `invalidFile`, with what is wrong with it.
    package static func checkTables(of file: ELFBytes) throws(PluginError) {
        let dynamic = try ELFDynamic(file)
        _ = try (dynamic.needed(), dynamic.runpath(), dynamic.soname())
        _ = try ELFSymbols(dynamic)
    }

    /// Throws `invalidFile` if the entry function of a module is not exported.
    package func requireEntry(path: String) throws(PluginError) {
        guard !exportsEntry else { return }
        throw PluginError(
            .invalidFile,
            "\(path) is a shared library, but no module: it does not export the function plugin_module_entry. In Swift "
                + "it must be public and marked @_cdecl(\"plugin_module_entry\"), in C PLUGIN_MODULE_EXPORT.")
    }
}
