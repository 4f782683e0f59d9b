import Glibc
package import PluginABI
import Synchronization

/// An untrusted file that is read block by block on demand, into memory as large as the file.
///
/// The file is read, not mapped: a mapped file that is truncated kills the process that reads it. Only the blocks that
/// are read take memory. Used by one thread only.
package final class FileWindow {
    /// The content of the file, with zeros for what could not be read. Blocks that were not requested with
    /// ``require(_:_:)`` are undefined.
    let bytes: UnsafeRawBufferPointer
    /// The reason (`errno`) why a block could not be read; 0 if there was no error.
    package private(set) var failure: Int32 = 0
    /// The number of bytes that have been read.
    package private(set) var bytesRead = 0
    private let descriptor: Int32
    /// One bit for each block that has been read. In memory of its own: accesses to a stored array are checked when the
    /// program runs, and tables of symbols are read number by number.
    private let isRead: UnsafeMutableBufferPointer<UInt64>

    /// The size of a block in bytes.
    private static let block = 1 << 12

    /// - Parameters:
    ///   - descriptor: The file's descriptor. It must stay open while the window is used.
    ///   - size: The size of the file in bytes.
    /// - Throws: `stagingFailed` if there is not enough memory.
    package init(_ descriptor: Int32, size: Int, path: String) throws(PluginError) {
        self.descriptor = descriptor
        isRead = .allocate(capacity: size / Self.block / 64 + 1)
        isRead.initialize(repeating: 0)
        guard size > 0 else {
            bytes = UnsafeRawBufferPointer(start: nil, count: 0)
            return
        }
        guard let address = KeptMemory.take(size) else {
            let code = errno
            isRead.deallocate()
            throw PluginError(.stagingFailed, "There is not enough memory to read \(path): \(describe(errno: code)).")
        }
        // Sound: this object owns the memory, which lives as long as the object.
        bytes = UnsafeRawBufferPointer(start: address, count: size)
    }

    deinit {
        isRead.deallocate()
        if let address = bytes.baseAddress { KeptMemory.give(UnsafeMutableRawPointer(mutating: address), bytes.count) }
    }

    /// Reads the blocks that contain those of the `size` bytes at `offset` that are inside the file.
    @inline(__always)
    func require(_ offset: UInt64, _ size: UInt64) {
        guard size > 0, offset < UInt64(bytes.count) else { return }
        let first = Int(offset) / Self.block
        let last = Int(offset + min(size, UInt64(bytes.count) - offset) - 1) / Self.block
        if first == last, hasRead(first) { return }
        readMissing(first..<last + 1)
    }

    /// - Parameter block: A block of the file.
    @inline(__always)
    private func hasRead(_ block: Int) -> Bool {
        // Sound: there is a bit for each block of the file.
        isRead.baseAddress.unsafelyUnwrapped[block >> 6] >> UInt64(block & 63) & 1 != 0
    }

    @inline(never)
    private func readMissing(_ blocks: Range<Int>) {
        var block = blocks.lowerBound
        while block < blocks.upperBound {
            let first = block
            while block < blocks.upperBound, !hasRead(block) {
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
        // A file that was truncated: the memory may contain bytes of another file.
        if count < end - start { memset(memory + count, 0, end - start - count) }
        bytesRead += count
    }
}

/// Memory of windows that later windows use again, at most 16 MiB. To map and unmap memory for each of a thousand files
/// would take as long as reading what is needed of them, since each page is cleared, and each unmapping interrupts the
/// other threads.
private enum KeptMemory {
    /// The size in bytes of a piece that is kept: most modules are smaller.
    private static let size = 8 << 20
    /// As many pieces as threads that examine files at once.
    private static let limit = 2
    private static let pieces = Mutex<[UInt]>([])

    /// Returns at least `size` bytes with any content, or `nil` with `errno` set.
    static func take(_ size: Int) -> UnsafeMutableRawPointer? {
        if size <= Self.size, let piece = pieces.withLock({ $0.popLast() }) {
            return UnsafeMutableRawPointer(bitPattern: piece)
        }
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
        let address = mmap(nil, max(size, Self.size), PROT_READ | PROT_WRITE, flags, -1, 0)
        guard let address, address != MAP_FAILED else { return nil }
        madvise(address, max(size, Self.size), MADV_NOHUGEPAGE)  // Few pages of it are used.
        return address
    }

    /// Takes back what ``take(_:)`` returned for the same size.
    static func give(_ address: UnsafeMutableRawPointer, _ size: Int) {
        let isKept = pieces.withLock { pieces in
            guard size <= Self.size, pieces.count < limit else { return false }
            pieces.append(UInt(bitPattern: address))
            return true
        }
        if !isKept { munmap(address, max(size, Self.size)) }
    }
}
