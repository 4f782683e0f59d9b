package import PluginABI

/// The symbols that a file exports besides the entry function.
package struct ELFExports: Sendable, Equatable {
    /// The names of the symbols that are not Swift symbols, sorted.
    package var names: [String] = []
    /// The address of each of these symbols in the file.
    package var addresses: [String: UInt64] = [:]
    /// The number of Swift symbols, whose names contain the name of their Swift module.
    package var swiftCount = 0
}

extension ELFSymbols {
    /// Returns the exported symbols. Omits the entry function, the symbols that every linker makes, and the weak and
    /// unique symbols of inline functions and templates, which other libraries may define as well.
    ///
    /// Stops after ``textLimit`` bytes of names, because names can share bytes in the file.
    ///
    /// - Parameter count: The number of symbols. ``findEntry(count:)`` must have checked them.
    func exports(count: UInt64) throws(PluginError) -> ELFExports {
        var exports = ELFExports()
        var room = Self.textLimit
        for index in 0..<min(count, limit) {
            let symbol = try symbol(index)
            // Only symbols that are defined here, global, and of default or protected visibility.
            guard symbol.section != 0, symbol.binding == 1, symbol.isVisible else { continue }
            let name = try dynamic.file.string(at: dynamic.strings.offset + symbol.name, end: dynamic.strings.end)
            room -= name.utf8.count
            guard room >= 0 else { break }
            if name.hasPrefix("$s") {
                exports.swiftCount += 1
            } else if !Self.expected.contains(name) {
                exports.names.append(name)
                exports.addresses[name] = symbol.value
            }
        }
        exports.names.sort()
        return exports
    }

    /// The maximum total length of the names that are read, in bytes.
    static let textLimit = 16 << 20

    private static let expected: Set<String> = [
        "", "plugin_module_entry", "__bss_start", "_edata", "_end", "__end__", "_init", "_fini", "__bss_end__",
        "_bss_end__", "__bss_start__",
    ]
}

extension ELFImage {
    /// Returns the symbols that a file exports besides the entry function; see ``ELFSymbols/exports(count:)``.
    ///
    /// - Throws: `invalidFile`.
    package static func exports(of bytes: UnsafeRawBufferPointer, path: String) throws(PluginError) -> ELFExports {
        let file = ELFBytes(bytes: bytes, path: path)
        let dynamic = try ELFDynamic(file)
        let symbols = try ELFSymbols(dynamic)
        if let count = symbols.count { return try symbols.exports(count: count) }
        return try symbols.exports(count: ELFRelocations(dynamic).symbolCount)
    }
}
