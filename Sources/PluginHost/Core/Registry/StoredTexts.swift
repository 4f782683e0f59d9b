import Glibc

/// A file with texts that are read when they are used. Closed with this object; until then, its content exists even if
/// another file takes its name.
final class StoredTexts: Sendable {
    private let descriptor: Int32
    /// The size in bytes.
    let size: Int

    init(_ descriptor: Int32, size: Int) { (self.descriptor, self.size) = (descriptor, size) }

    deinit { close(descriptor) }

    /// Returns a text; an empty one if it cannot be read.
    func bytes(_ range: Range<Int>) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: range.count) { bytes, count in
            if read(UnsafeMutableRawBufferPointer(bytes), at: range.lowerBound) { count = range.count }
        }
    }

    /// Reads bytes at a position. Returns whether all could be read.
    func read(_ bytes: UnsafeMutableRawBufferPointer, at start: Int) -> Bool {
        var count = 0
        while count < bytes.count {
            let step = pread(descriptor, bytes.baseAddress! + count, bytes.count - count, start + count)
            if step < 0, errno == EINTR { continue }
            guard step > 0 else { return false }
            count += step
        }
        return true
    }
}
