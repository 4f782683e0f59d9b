import CPluginHost
import Glibc
import PluginABI
import PluginFile

/// The program or a library that is loaded in the process.
struct LoadedImage {
    /// The path of the library; `nil` for the program.
    let library: String?
    private let base: UInt
    private let headers: [Elf64_Phdr]

    /// How many records an image may have.
    private static let recordLimit: UInt64 = 1024
    /// How many bytes of notes are compared.
    private static let noteLimit: UInt64 = 1 << 16

    /// The images that are loaded now, except the one that the kernel provides (`linux-vdso.so.1`), which has no file.
    static var all: [LoadedImage] {
        var images: [LoadedImage] = []
        withUnsafeMutablePointer(to: &images) { images in
            plugin_host_each_image(
                { images, image in
                    let images = images!.assumingMemoryBound(to: [LoadedImage].self)
                    images.pointee.append(LoadedImage(image!.pointee, isFirst: images.pointee.isEmpty))
                }, images)
        }
        return images.filter { $0.library?.utf8.contains(UInt8(ascii: "/")) ?? true }
    }

    private init(_ image: plugin_host_image, isFirst: Bool) {
        let path = String(cString: image.path)
        library = path.isEmpty && isFirst ? nil : path
        base = image.base
        // Sound: the dynamic linker reports where the program headers are in memory, and how many there are.
        headers = Array(
            UnsafeBufferPointer(
                start: image.program_headers?.assumingMemoryBound(to: Elf64_Phdr.self),
                count: image.program_header_count))
    }

    /// Whether the image contains this function, and with it the symbols for its own records.
    var containsThisCode: Bool {
        isLoaded(UInt64(UInt(bitPattern: plugin_host_own_address()) &- base), 1, flags: 0)
    }

    static var ownRecords: [UInt] {
        var count = 0
        let start = plugin_host_own_records(&count)
        return UnsafeBufferPointer(start: start, count: count).map { UInt(bitPattern: $0) }
    }

    /// Returns whether `size` bytes at an address relative to the base are loaded with these access rights.
    private func isLoaded(_ address: UInt64, _ size: UInt64, flags: Int32) -> Bool {
        headers.contains { header in
            header.p_type == UInt32(PT_LOAD) && header.p_flags & UInt32(flags) == UInt32(flags)
                && address >= header.p_vaddr && address - header.p_vaddr <= header.p_memsz
                && size <= header.p_memsz - (address - header.p_vaddr)
        }
    }

    /// Returns bytes of the image, which must be loaded and readable.
    private func memory(_ address: UInt64, _ size: UInt64) -> UnsafeRawBufferPointer {
        // Sound: images are not unmapped while they are linked into the process, and the caller has checked the range.
        UnsafeRawBufferPointer(start: UnsafeRawPointer(bitPattern: base &+ UInt(address)), count: Int(size))
    }

    /// Returns the addresses in the records of the image, from its file and its memory.
    ///
    /// - Throws: An error that states why the image cannot be searched.
    func records() throws(PluginError) -> [UInt] {
        do throws(PluginError) {
            return try sections().flatMap { section in
                memory(section.address, section.size).withMemoryRebound(to: UInt.self) { Array($0) }
            }
        } catch {
            throw PluginError(error.code, "\(error.message) Modules that are linked into it are not found.")
        }
    }

    private func sections() throws(PluginError) -> [ELFSections.Section] {
        let path = library ?? "/proc/self/exe"
        if plugin_host_lacks_section(path, "plugin_modules") == 1 { return [] }
        var bytesRead = 0
        let sections = try SourceFile(opening: path).inspect(&bytesRead) { (file) throws(PluginError) in
            let sections = try ELFSections(file)
            guard !sections.isEmpty else { throw PluginError(.invalidFile, "\(path) has no section headers.") }
            let found = try sections.loaded(named: "plugin_modules")
            guard found.isEmpty || isImage(of: sections) else {
                throw PluginError(.invalidFile, "The file \(path) has changed since the process loaded it.")
            }
            return found
        }
        for section in sections {
            guard section.address.isMultiple(of: 8), section.size.isMultiple(of: 8),
                section.size <= Self.recordLimit * 8, isLoaded(section.address, section.size, flags: PF_R)
            else {
                throw PluginError(
                    .invalidFile,
                    "\(path) has a section plugin_modules of \(section.size) bytes at address \(section.address). It "
                        + "must consist of at most \(Self.recordLimit) addresses, and be loaded.")
            }
        }
        return sections
    }

    /// Returns whether the image was loaded from the file as it is now: whether the program headers and the notes (with
    /// the build id) are the same.
    private func isImage(of file: ELFSections) -> Bool {
        headers.withUnsafeBytes { file.hasProgramHeaders($0) }
            && headers.allSatisfy { header in
                guard header.p_type == UInt32(PT_NOTE), header.p_filesz <= Self.noteLimit,
                    isLoaded(header.p_vaddr, header.p_filesz, flags: PF_R)
                else { return true }
                return file.hasBytes(memory(header.p_vaddr, header.p_filesz), at: header.p_offset)
            }
    }

    /// Returns the entry function at the address in a record.
    func entry(at address: UInt) -> Result<@Sendable () -> UInt, PluginError> {
        guard address != 0 else { return .success({ 0 }) }
        guard isLoaded(UInt64(address &- base), 1, flags: PF_X) else {
            return .failure(
                PluginError(
                    .invalidDescription,
                    "A record in the section plugin_modules of \(library ?? "the program") leads to code of another "
                        + "file. Make it with PLUGIN_MODULE_RECORD of this host's plugin_abi.h."))
        }
        let entry = unsafeBitCast(address, to: plugin_module_entry_function.self)
        return .success({ UInt(bitPattern: entry()) })
    }
}
