package import PluginABI

extension ELFSymbols {
    /// The names of what the file exports, sorted, without those of Swift, which carry their module's name, those that
    /// every linker makes, the weak and unique ones of inline functions and templates, which any library may define as
    /// well, and the entry function.
    ///
    /// It ends after ``textLimit`` bytes of names: names can share their bytes in the file.
    ///
    /// - Parameter count: How many symbols there are; those that ``findEntry(count:)`` has checked.
    func exportedNames(count: UInt64) throws(PluginError) -> [String] {
        var names: [String] = []
        var room = Self.textLimit
        for index in 0..<min(count, limit) {
            let symbol = try symbol(index)
            // Defined here, global, of default or protected visibility.
            guard symbol.section != 0, symbol.binding == 1, symbol.isVisible else { continue }
            let name = try dynamic.file.string(at: dynamic.strings.offset + symbol.name, end: dynamic.strings.end)
            room -= name.utf8.count
            guard room >= 0 else { break }
            if !name.hasPrefix("$s"), !Self.expected.contains(name) { names.append(name) }
        }
        return names.sorted()
    }

    /// How many bytes of names are read, at most.
    static let textLimit = 16 << 20

    private static let expected: Set<String> = [
        "", "plugin_module_entry", "__bss_start", "_edata", "_end", "__end__", "_init", "_fini", "__bss_end__",
        "_bss_end__", "__bss_start__",
    ]
}

extension ELFImage {
    /// What a file exports besides the entry function; see ``ELFSymbols/exportedNames(count:)``.
    ///
    /// - Throws: `invalidFile`.
    package static func exports(of bytes: UnsafeRawBufferPointer, path: String) throws(PluginError) -> [String] {
        let file = ELFBytes(bytes: bytes, path: path)
        let dynamic = try ELFDynamic(file)
        let symbols = try ELFSymbols(dynamic)
        if let count = symbols.count { return try symbols.exportedNames(count: count) }
        return try symbols.exportedNames(count: ELFRelocations(dynamic).symbolCount)
    }
}
