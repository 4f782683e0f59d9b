import PluginABI

/// The bytes of a file, with bounds-checked access by offset.
///
/// Borrows the memory, and is valid only as long as the buffer that it was made from.
package struct ELFBytes {
    private let memory: UnsafeRawBufferPointer
    /// The path of the file in errors.
    let path: String
    /// The window that reads the file on demand; `nil` if the whole file is in memory.
    private let window: FileWindow?

    /// Makes the bytes of a file that is completely in memory.
    init(bytes: UnsafeRawBufferPointer, path: String) {
        (memory, self.path, window) = (bytes, path, nil)
    }

    /// Makes the bytes of a file that is read on demand.
    package init(_ window: FileWindow, path: String) {
        (memory, self.path, self.window) = (window.bytes, path, window)
    }

    /// Returns those of the `size` bytes at `offset` that are inside the file.
    func bytes(_ offset: UInt64, _ size: UInt64) -> UnsafeRawBufferPointer {
        let start = min(offset, count)
        let end = start + min(size, count - start)
        window?.require(start, end - start)
        // Sound: both offsets are inside the file.
        return UnsafeRawBufferPointer(rebasing: memory[Int(start)..<Int(end)])
    }

    /// Returns the same file for a loop over one of its tables: the table is read at once, and the single reads do not
    /// check again whether their bytes have been read.
    ///
    /// - Parameters:
    ///   - offset: The start of the table.
    ///   - size: The size of the table in bytes. Bytes outside of the table must not be read through the result, and
    ///     none after the window has gone.
    func table(_ offset: UInt64, _ size: UInt64) -> ELFBytes {
        window?.require(offset, size)
        return ELFBytes(bytes: memory, path: path)
    }

    var count: UInt64 { UInt64(memory.count) }

    /// Returns whether the `size` bytes at `offset` are inside the file.
    func contains(_ offset: UInt64, _ size: UInt64) -> Bool { offset <= count && size <= count - offset }

    /// Returns the integer, or structure of integers, at `offset`, in the byte order of this machine. Throws if it is
    /// not completely inside the file.
    func read<Plain: BitwiseCopyable>(_ type: Plain.Type, at offset: UInt64) throws(PluginError) -> Plain {
        let size = UInt64(MemoryLayout<Plain>.size)
        try check(contains(offset, size), else: "it refers to byte \(offset), but has only \(count) bytes")
        window?.require(offset, size)
        // Sound: the range was checked above.
        return memory.loadUnaligned(fromByteOffset: Int(offset), as: type)
    }

    /// Returns the text from `offset` up to a zero byte, which must come before `end` and within 4,096 bytes.
    func string(at offset: UInt64, end: UInt64) throws(PluginError) -> String {
        let limit = min(end, count, offset.addingReportingOverflow(4096).partialValue)
        try check(offset < limit, else: "a name is outside the string table")
        let text = bytes(offset, limit - offset)
        guard let terminator = text.firstIndex(of: 0) else {
            throw damaged("a name in its string table is not terminated, or longer than 4096 bytes")
        }
        return String(decoding: text[..<terminator], as: UTF8.self)
    }

    /// Returns whether the text at `offset` is `name`.
    func isString(_ name: StaticString, at offset: UInt64) -> Bool {
        let size = UInt64(name.utf8CodeUnitCount)
        guard contains(offset, size + 1) else { return false }
        let text = bytes(offset, size + 1)
        return text[Int(size)] == 0 && name.withUTF8Buffer { $0.elementsEqual(text.dropLast()) }
    }

    /// Returns the 32-bit number at `offset`.
    func word(at offset: UInt64) throws(PluginError) -> UInt64 { UInt64(try read(UInt32.self, at: offset)) }

    /// Refuses the file as damaged unless `holds` is true.
    @inline(__always)
    func check(_ holds: Bool, else what: @autoclosure () -> String) throws(PluginError) {
        if !holds { throw damaged(what()) }
    }

    /// Refuses the file unless `holds` is true.
    ///
    /// - Parameter message: The rest of a sentence that begins with the path of the file.
    @inline(__always)
    func check(_ holds: Bool, invalid message: @autoclosure () -> String) throws(PluginError) {
        if !holds { throw invalid(message()) }
    }

    func invalid(_ message: String) -> PluginError { PluginError(.invalidFile, "\(path) \(message)") }

    func damaged(_ what: String) -> PluginError {
        invalid("is damaged: \(what). Build or copy it again.")
    }
}

/// Multiplies and adds sizes that come from a file. On overflow, returns the largest number, which is outside every
/// file.
func saturating(_ count: UInt64, times size: UInt64, plus offset: UInt64 = 0) -> UInt64 {
    let product = count.multipliedReportingOverflow(by: size)
    let sum = product.partialValue.addingReportingOverflow(offset)
    return product.overflow || sum.overflow ? .max : sum.partialValue
}
