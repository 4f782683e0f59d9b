import Glibc
package import PluginABI

/// An untrusted file that is read block by block on demand, into memory as large as the file.
///
/// The file is read, not mapped: a mapped file that is truncated kills the process that reads it. Only the blocks that
/// are read take memory. Used by one thread only.
package final class FileWindow {
    /// The content of the file. Blocks that were not requested with ``require(_:_:)`` are zero.
    let bytes: UnsafeRawBufferPointer
    /// The reason (`errno`) why a block could not be read; 0 if there was no error.
    package private(set) var failure: Int32 = 0
    /// The number of bytes that have been read.
    package private(set) var bytesRead = 0
    private let descriptor: Int32
    /// One bit for each block that has been read.
    private var isRead: [UInt64]

    /// The size of a block in bytes.
    private static let block = 1 << 12

    /// - Parameters:
    ///   - descriptor: The file's descriptor. It must stay open while the window is used.
    ///   - size: The size of the file in bytes.
    /// - Throws: `stagingFailed` if there is not enough memory.
    package init(_ descriptor: Int32, size: Int, path: String) throws(PluginError) {
        self.descriptor = descriptor
        isRead = Array(repeating: 0, count: size / Self.block / 64 + 1)
        guard size > 0 else {
            bytes = UnsafeRawBufferPointer(start: nil, count: 0)
            return
        }
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
        guard let address = mmap(nil, size, PROT_READ | PROT_WRITE, flags, -1, 0), address != MAP_FAILED else {
            throw PluginError(.stagingFailed, "There is not enough memory to read \(path): \(describe(errno: errno)).")
        }
        // Sound: this object owns the memory, which lives as long as the object.
        bytes = UnsafeRawBufferPointer(start: address, count: size)
    }

    deinit { if let address = bytes.baseAddress { munmap(UnsafeMutableRawPointer(mutating: address), bytes.count) } }

    /// Reads the blocks that contain those of the `size` bytes at `offset` that are inside the file.
    func require(_ offset: UInt64, _ size: UInt64) {
        guard size > 0, offset < UInt64(bytes.count) else { return }
        let last = Int(min(offset.addingReportingOverflow(size - 1).partialValue, UInt64(bytes.count) - 1)) / Self.block
        let end = max(last, Int(offset) / Self.block) + 1
        var block = Int(offset) / Self.block
        while block < end {
            let first = block
            while block < end, isRead[block >> 6] >> UInt64(block & 63) & 1 == 0 {
                isRead[block >> 6] |= 1 << UInt64(block & 63)
                block += 1
            }
            if first < block { read(first..<block) } else { block += 1 }
        }
    }

    private func read(_ blocks: Range<Int>) {
        let (start, end) = (blocks.lowerBound * Self.block, min(blocks.upperBound * Self.block, bytes.count))
        // Sound: the blocks are inside the memory, which this object owns and which is writable.
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
