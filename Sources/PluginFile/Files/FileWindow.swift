import Glibc
package import PluginABI

/// A file of somebody else's, read block by block where something is asked of it, into memory that stands for all of it.
///
/// It is read and not mapped: a mapped file that is cut short kills the process that reads it. Memory is taken only for
/// the blocks that are read. Not for more than one thread.
package final class FileWindow {
    /// As long as the file. What ``require(_:_:)`` has not asked for is zero.
    let bytes: UnsafeRawBufferPointer
    /// Why a block could not be read (`errno`); 0 while all could.
    package private(set) var failure: Int32 = 0
    /// How many bytes have been read.
    package private(set) var bytesRead = 0
    private let descriptor: Int32
    /// One bit for each block.
    private var isRead: [UInt64]

    /// In bytes.
    private static let block = 1 << 14

    /// - Parameters:
    ///   - descriptor: Of the file; it stays open while the window is used.
    ///   - size: Of the file, in bytes.
    /// - Throws: `stagingFailed` where there is no memory.
    package init(_ descriptor: Int32, size: Int, path: String) throws(PluginError) {
        self.descriptor = descriptor
        isRead = Array(repeating: 0, count: size / Self.block / 64 + 1)
        guard size > 0 else {
            bytes = UnsafeRawBufferPointer(start: nil, count: 0)
            return
        }
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
        guard let address = mmap(nil, size, PROT_READ | PROT_WRITE, flags, -1, 0), address != MAP_FAILED else {
            throw PluginError(.stagingFailed, "There is no memory to read \(path): \(describe(errno: errno)).")
        }
        // Sound: the memory is this object's own, and lives as long as it.
        bytes = UnsafeRawBufferPointer(start: address, count: size)
    }

    deinit { if let address = bytes.baseAddress { munmap(UnsafeMutableRawPointer(mutating: address), bytes.count) } }

    /// Reads the blocks with the `size` bytes from `offset` on, as far as they lie in the file.
    func require(_ offset: UInt64, _ size: UInt64) {
        guard size > 0, offset < UInt64(bytes.count) else { return }
        let last = Int(min(offset.addingReportingOverflow(size - 1).partialValue, UInt64(bytes.count) - 1)) / Self.block
        for block in Int(offset) / Self.block...max(last, Int(offset) / Self.block)
        where isRead[block >> 6] >> UInt64(block & 63) & 1 == 0 {
            isRead[block >> 6] |= 1 << UInt64(block & 63)
            read(block)
        }
    }

    private func read(_ block: Int) {
        let (start, end) = (block * Self.block, min((block + 1) * Self.block, bytes.count))
        // Sound: the block lies inside of the memory, which is this object's own and writable.
        let memory = UnsafeMutableRawPointer(mutating: bytes.baseAddress! + start)
        var count = 0
        while count < end - start {
            let step = pread(descriptor, memory + count, end - start - count, off_t(start + count))
            if step < 0, errno == EINTR { continue }
            if step < 0 { failure = errno }
            guard step > 0 else { break }
            count += step
        }
        bytesRead += count
    }
}
