import PluginABI

/// The header of an ELF file. Reading it checks that the file is an ELF file, is for this machine, and is a shared
/// object; otherwise, the error states what it is instead.
struct ELFHeader {
    let programHeaders: UInt64
    let programHeaderCount: UInt64
    let sectionHeaders: UInt64
    let sectionHeaderCount: UInt64
    /// The number of the processor that the file is for.
    let machine: UInt16

    /// - Parameters:
    ///   - isLoaded: Whether the process has loaded the file. Then it may be a program, and its sections are not
    ///     checked.
    ///   - isForeign: Whether the file may be for another machine, if it is a 64-bit one with the same byte order.
    init(
        _ file: ELFBytes, ofLoadedImage isLoaded: Bool = false, forAnyMachine isForeign: Bool = false
    ) throws(PluginError) {
        try Self.checkMagic(file)
        let kind = try file.read(UInt8.self, at: 4)
        try file.check(kind != 1, invalid: "is a 32-bit file. Build the module for this 64-bit machine.")
        try file.check(kind == 2, else: "its header has class \(kind), but 64-bit files have 2")
        let order = try file.read(UInt8.self, at: 5)
        try file.check(
            order != 2,
            invalid: "is a big-endian file, but this machine is little-endian. Build the module for this machine.")
        try file.check(order == 1, else: "its header has byte order \(order), but little-endian files have 1")
        let versions = (try file.read(UInt8.self, at: 6), try file.word(at: 20))
        try file.check(
            versions == (1, 1),
            else: "its header has the ELF versions \(versions.0) and \(versions.1), expected 1 and 1")
        let system = try file.read(UInt8.self, at: 7)
        try file.check(
            system == 0 || system == 3,
            invalid: "is for another operating system (OS ABI \(system), expected 0 or 3). Build the module for Linux.")
        if !isLoaded { try Self.checkType(file) }
        machine = try file.read(UInt16.self, at: 18)
        let machine = machine
        try file.check(
            isForeign || machine == ELFImage.thisMachine,
            invalid: "is built for \(ELFImage.name(ofMachine: machine)), but this machine is "
                + "\(ELFImage.name(ofMachine: ELFImage.thisMachine)). Build the module for this machine.")
        try Self.expect(file, "header size (e_ehsize)", at: 52, 64)
        try Self.expect(file, "program header size (e_phentsize)", at: 54, 56)

        programHeaders = try file.read(UInt64.self, at: 32)
        programHeaderCount = UInt64(try file.read(UInt16.self, at: 56))
        let count = programHeaderCount
        try file.check((1...1024).contains(count), else: "it has \(count) program headers, expected 1 to 1024")
        let start = programHeaders
        try file.check(start >= 64 && start % 8 == 0, else: "its program headers cannot begin at byte \(start)")
        sectionHeaders = try file.read(UInt64.self, at: 40)
        let sections = UInt64(try file.read(UInt16.self, at: 60))
        if sectionHeaders != 0 { try Self.expect(file, "section header size (e_shentsize)", at: 58, 64) }
        // With 65,280 sections or more, the first section's size is their number.
        let isMany = sectionHeaders != 0 && sections == 0 && file.contains(sectionHeaders, 64)
        sectionHeaderCount =
            isMany ? try file.read(UInt64.self, at: sectionHeaders + 32) : sectionHeaders == 0 ? 0 : sections
        // A linker writes the section headers at the end, so a truncated file is noticed here first.
        let end = saturating(sectionHeaderCount, times: 64, plus: sectionHeaders)
        try Self.checkEnd(file, max(saturating(programHeaderCount, times: 56, plus: programHeaders), end))
        if sectionHeaders != 0, !isLoaded { try checkSections(file) }
    }

    private func checkSections(_ file: ELFBytes) throws(PluginError) {
        let names = UInt64(try file.read(UInt16.self, at: 62))
        try file.check(
            names < sectionHeaderCount || names >= 0xff00,
            else: "its section names should be in section \(names), but it has only \(sectionHeaderCount) sections")
        for index in 0..<sectionHeaderCount {
            let section = sectionHeaders + index * 64
            let type = try file.word(at: section + 4)
            if type == 0 || type == 8 { continue }  // SHT_NULL and SHT_NOBITS have no bytes in the file.
            let size = try file.read(UInt64.self, at: section + 32)
            try Self.checkEnd(file, saturating(1, times: size, plus: try file.read(UInt64.self, at: section + 24)))
        }
    }

    /// Refuses a file that ends before `end`, the end of one of its parts.
    static func checkEnd(_ file: ELFBytes, _ end: UInt64) throws(PluginError) {
        let isWild = end > 1 << 48 && end > file.count
        try file.check(!isWild, else: "its header refers to byte \(end), but it has only \(file.count) bytes")
        try file.check(
            end <= file.count, invalid: "is cut short: \(file.count) bytes, \(end) expected. Copy it again.")
    }

    private static func expect(
        _ file: ELFBytes, _ field: String, at offset: UInt64, _ expected: UInt16
    ) throws(PluginError) {
        let found = try file.read(UInt16.self, at: offset)
        try file.check(found == expected, else: "its \(field) is \(found), expected \(expected)")
    }

    private static func checkType(_ file: ELFBytes) throws(PluginError) {
        switch try file.read(UInt16.self, at: 16) {
        case 3: return
        case 1: throw file.invalid(isNoLibrary("an object file, not linked yet"))
        case 2: throw file.invalid(isNoLibrary("an executable"))
        case 4: throw file.invalid(isNoLibrary("a core dump"))
        case let other: throw file.damaged("its header has file type \(other), but shared libraries have 3")
        }
    }

    static func isNoLibrary(_ what: String) -> String {
        "is \(what), not a shared library. Link the module with -shared (SwiftPM: type: .dynamic)."
    }

    private static func checkMagic(_ file: ELFBytes) throws(PluginError) {
        try file.check(file.count > 0, invalid: "is empty. A module is a shared library.")
        let magic: [UInt8] = [0x7F, 0x45, 0x4C, 0x46]
        let start = file.bytes(0, 512)
        let isELF = start.prefix(4).elementsEqual(magic.prefix(start.count))
        try file.check(isELF, invalid: "is \(looks(start)), not a shared library.")
        try file.check(
            file.count >= 64,
            invalid: "is cut short: \(file.count) bytes, but the ELF header alone has 64. Copy it again.")
    }

    /// Returns the apparent type of a file that is not an ELF file, judging by its first 512 bytes.
    private static func looks(_ bytes: UnsafeRawBufferPointer) -> String {
        let known: [(start: [UInt8], what: String)] = [
            (Array("#!".utf8), "a script"), (Array("!<arch>\n".utf8), "a static library (ar archive)"),
            (Array("!<thin>\n".utf8), "a static library (thin ar archive)"),
            ([0xCF, 0xFA, 0xED, 0xFE], "a Mach-O file (macOS)"), ([0xCA, 0xFE, 0xBA, 0xBE], "a Mach-O file (macOS)"),
            (Array("MZ".utf8), "a Windows program or library"), (Array("PK\u{3}\u{4}".utf8), "a ZIP archive"),
            ([0x1F, 0x8B], "a gzip archive"), (Array("BC".utf8) + [0xC0, 0xDE], "LLVM bitcode"),
            (Array("\0asm".utf8), "a WebAssembly module"),
        ]
        if let found = known.first(where: { bytes.starts(with: $0.start) }) { return found.what }
        let isText = bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F || (0x09...0x0D).contains($0) }
        if isText { return "a text file" }
        return bytes.allSatisfy { $0 == 0 } ? "filled with zero bytes" : "of an unknown format"
    }
}

extension ELFImage {
    #if arch(x86_64)
        static let thisMachine: UInt16 = 62
    #elseif arch(arm64)
        static let thisMachine: UInt16 = 183
    #elseif arch(riscv64)
        static let thisMachine: UInt16 = 243
    #endif

    /// Returns the name of the processor that a value of `e_machine` stands for.
    static func name(ofMachine machine: UInt16) -> String {
        let names: [UInt16: String] = [
            3: "x86 (32-bit)", 8: "MIPS", 20: "PowerPC", 21: "PowerPC", 22: "s390", 40: "ARM (32-bit)", 62: "x86-64",
            183: "AArch64", 243: "RISC-V", 258: "LoongArch",
        ]
        return names[machine] ?? "an unknown machine (\(machine))"
    }
}
