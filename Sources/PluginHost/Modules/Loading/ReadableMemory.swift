import CPluginHost
import PluginABI

/// The memory that a description points to. It is checked before it is read, so that an invalid pointer is an error of
/// the module instead of a crash of the host.
final class ReadableMemory {
    private let path: String
    /// The range of pages that was last found to be readable.
    private var known: Range<UInt> = 0..<0

    init(of path: String) { self.path = path }

    /// Checks that `count` bytes at `pointer` can be read.
    ///
    /// - Throws: `invalidDescription` if some of the bytes cannot be read, or the pointer is not aligned for its type.
    func require<Pointee>(_ pointer: UnsafePointer<Pointee>?, _ count: Int, _ field: String) throws(PluginError) {
        guard count > 0, let pointer else { return }
        let start = UInt(bitPattern: pointer)
        guard start.isMultiple(of: UInt(MemoryLayout<Pointee>.alignment)) else {
            throw PluginError(
                .invalidDescription,
                "The pointer to \(field) in \(path), 0x\(String(start, radix: 16)), is not a multiple of "
                    + "\(MemoryLayout<Pointee>.alignment).")
        }
        let (end, overflow) = start.addingReportingOverflow(UInt(count))
        if !overflow, known.contains(start), end <= known.upperBound { return }
        guard !overflow, plugin_host_is_readable(pointer, count) != 0 else {
            throw PluginError(
                .invalidDescription,
                "The pointer to \(field) in \(path), 0x\(String(start, radix: 16)), does not lead to \(count) readable "
                    + "bytes.")
        }
        // Memory is readable in whole pages, which have at least 4096 bytes.
        known = start & ~4095..<max(end, (end + 4095) & ~4095)
    }
}
