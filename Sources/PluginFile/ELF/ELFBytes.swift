import PluginABI

/// The bytes of a file, read without ever leaving them: every access names an offset in the file and is checked.
///
/// Borrows the memory: valid for as long as the buffer that it was made of.
package struct ELFBytes {
    private let memory: UnsafeRawBufferPointer
    /// How the file is called in errors.
    let path: String
    /// What reads the file into the memory as it is asked for; nil where all of it is there.
    private let window: FileWindow?

    /// A file that is in memory as a whole.
    init(bytes: UnsafeRawBufferPointer, path: String) {
        (memory, self.path, window) = (bytes, path, nil)
    }

    /// A file that is read where something is asked of it.
    package init(_ window: FileWindow, path: String) {
        (memory, self.path, self.window) = (window.bytes, path, window)
    }

    /// The bytes of a part, as far as it lies in the file.
    func bytes(_ offset: UInt64, _ size: UInt64) -> UnsafeRawBufferPointer {
        let start = min(offset, count)
        let end = start + min(size, count - start)
        window?.require(start, end - start)
        // Sound: both lie inside the file.
        return UnsafeRawBufferPointer(rebasing: memory[Int(start)..<Int(end)])
    }

    var count: UInt64 { UInt64(memory.count) }

    /// Whether `size` bytes from `offset` on lie inside the file.
    func contains(_ offset: UInt64, _ size: UInt64) -> Bool { offset <= count && size <= count - offset }

    /// The integer at `offset`, in the byte order of this machine; an error where the file ends before.
    func read<Integer: FixedWidthInteger & BitwiseCopyable>(
        _ type: Integer.Type, at offset: UInt64
    ) throws(PluginError) -> Integer {
        let size = UInt64(MemoryLayout<Integer>.size)
        try check(contains(offset, size), else: "something lies at byte \(offset), and the file has \(count)")
        window?.require(offset, size)
        // Sound: the bytes are there, as was checked.
        return memory.loadUnaligned(fromByteOffset: Int(offset), as: type)
    }

    /// The text from `offset` up to a zero byte, which must come before `end` and within 4,096 bytes.
    func string(at offset: UInt64, end: UInt64) throws(PluginError) -> String {
        let limit = min(end, count, offset.addingReportingOverflow(4096).partialValue)
        try check(offset < limit, else: "a name lies outside its string table")
        let text = bytes(offset, limit - offset)
        guard let terminator = text.firstIndex(of: 0) else {
            throw damaged("a name in its string table has no end within 4096 bytes")
        }
        return String(decoding: text[..<terminator], as: UTF8.self)
    }

    /// Whether the text at `offset` is `name`.
    func isString(_ name: StaticString, at offset: UInt64) -> Bool {
        let size = UInt64(name.utf8CodeUnitCount)
        guard contains(offset, size + 1) else { return false }
        let text = bytes(offset, size + 1)
        return text[Int(size)] == 0 && name.withUTF8Buffer { $0.elementsEqual(text.dropLast()) }
    }

    /// A number of 32 bits.
    func word(at offset: UInt64) throws(PluginError) -> UInt64 { UInt64(try read(UInt32.self, at: offset)) }

    /// Refuses the file as damaged unless something holds.
    @inline(__always)
    func check(_ holds: Bool, else what: @autoclosure () -> String) throws(PluginError) {
        if !holds { throw damaged(what()) }
    }

    /// Refuses the file unless something holds.
    ///
    /// - Parameter message: The rest of a sentence that begins with the file.
    @inline(__always)
    func check(_ holds: Bool, invalid message: @autoclosure () -> String) throws(PluginError) {
        if !holds { throw invalid(message()) }
    }

    func invalid(_ message: String) -> PluginError { PluginError(.invalidFile, "\(path) \(message)") }

    func damaged(_ what: String) -> PluginError {
        invalid("is damaged: \(what). Build or copy it again.")
    }
}

/// Multiplication and addition of sizes that come from a file; they stop at the largest number instead of trapping,
/// and the largest number lies outside every file.
func saturating(_ count: UInt64, times size: UInt64, plus offset: UInt64 = 0) -> UInt64 {
    let product = count.multipliedReportingOverflow(by: size)
    let sum = product.partialValue.addingReportingOverflow(offset)
    return product.overflow || sum.overflow ? .max : sum.partialValue
}
