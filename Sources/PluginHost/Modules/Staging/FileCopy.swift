import CDispatch
import CPluginHost
import Glibc
import PluginABI
import PluginFile

/// A file that is opened once. All operations use its descriptor, never its path again.
struct SourceFile: ~Copyable {
    let path: String
    private let descriptor: Int32
    private let status: stat

    /// Opens a file without blocking, so that a FIFO without a writer, or a device, does not block the host.
    ///
    /// - Throws: `unreadable`; `invalidFile` if it is not a regular file.
    init(opening path: String) throws(PluginError) {
        let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else {
            let code = errno
            // A socket cannot be opened at all: report its type.
            var status = stat()
            if stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFREG {
                throw Self.wrongKind(path, status)
            }
            throw PluginError(.unreadable, "\(path) cannot be opened: \(describe(errno: code)).")
        }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw Self.wrongKind(path, status)
        }
        (self.path, self.descriptor, self.status) = (path, descriptor, status)
    }

    deinit { close(descriptor) }

    var identity: FileIdentity { FileIdentity(status) }

    private static func wrongKind(_ path: String, _ status: stat) -> PluginError {
        PluginError(.invalidFile, "\(path) is \(fileKind(mode: status.st_mode)), not a regular file.")
    }

    /// Checks that no users other than root and the process's user can write the file.
    ///
    /// - Throws: `untrusted`; `unreadable` if the file cannot be examined.
    func checkTrust() throws(PluginError) {
        try Trust.check(fileDescriptor: descriptor, path: path)
    }

    /// Checks the headers and tables that locate all other parts of the file, without reading more.
    ///
    /// - Parameter bytesRead: Increased by the number of bytes that were read.
    /// - Throws: `invalidFile` if the file cannot be a shared library; `unreadable`; `stagingFailed` if there is not
    ///   enough memory.
    func checkTables(_ bytesRead: inout Int) throws(PluginError) {
        var count = 0
        defer { bytesRead += count }
        try inspect(&count) { bytes throws(PluginError) in try ELFImage.checkTables(of: bytes) }
    }

    /// Reads parts of the file on demand.
    ///
    /// - Parameters:
    ///   - bytesRead: Set to the number of bytes that were read.
    ///   - name: The path of the file in the errors of `body`; `nil` for the path that was opened.
    /// - Throws: The error of `body`; `unreadable`; `stagingFailed` if there is not enough memory.
    func inspect<Result>(
        _ bytesRead: inout Int, as name: String? = nil, _ body: (ELFBytes) throws(PluginError) -> Result
    ) throws(PluginError) -> Result {
        let window = try FileWindow(descriptor, size: Int(identity.size), path: path)
        defer { bytesRead = window.bytesRead }
        do throws(PluginError) { return try body(ELFBytes(window, path: name ?? path)) } catch {
            guard window.failure == 0 else {
                throw PluginError(.unreadable, "\(path) cannot be read: \(describe(errno: window.failure)).")
            }
            throw error
        }
    }

    /// Returns whether a process has the file open for writing. The kernel grants a read lease only if none has. If the
    /// kernel does not know (on some file systems, or for files of other users), the result is false.
    func isBeingWritten() -> Bool { plugin_host_is_being_written(descriptor) == 1 }

    /// Returns whether the file has changed since it was opened.
    func hasChanged() -> Bool {
        var now = stat()
        return fstat(descriptor, &now) != 0 || FileIdentity(now).size != identity.size
            || FileIdentity(now).modified != identity.modified
    }

    /// The result of a copy.
    struct Copied {
        /// The size of the copy in bytes. It differs from the file's size if the file is being changed.
        let size: Int64
        /// The digest; see ``SourceFile/digest()``. `nil` if it was not computed while copying.
        let digest: UInt64?
    }

    /// Copies the file to a new file with mode 0500.
    ///
    /// - Throws: `unreadable` if the file cannot be read; `stagingFailed` if the copy cannot be written.
    func copy(to destination: String) throws(PluginError) -> Copied {
        let output = open(destination, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o700)
        guard output >= 0 else { throw failed(to: destination) }
        defer { close(output) }
        do throws(CopyFailure) {
            let copied = try copy(to: output)
            guard fchmod(output, 0o500) == 0 else { throw .writing }
            return copied
        } catch {
            switch error {
            case .reading:
                throw PluginError(.unreadable, "\(path) cannot be read completely: \(describe(errno: errno)).")
            case .writing: throw failed(to: destination)
            }
        }
    }

    /// The side of a copy that failed. `errno` contains the reason.
    enum CopyFailure: Error { case reading, writing }

    /// Copies the file to an open, empty file. If the file system supports it, both files share the same blocks.
    /// Otherwise holes are skipped, or, if there are none, the file is copied in pieces that fit in the processor's
    /// cache.
    func copy(to output: Int32) throws(CopyFailure) -> Copied {
        if plugin_host_share_bytes(descriptor, output) == 0 {
            var status = stat()
            guard fstat(output, &status) == 0 else { throw .writing }
            return Copied(size: Int64(status.st_size), digest: nil)
        }
        if Int64(status.st_blocks) * 512 < identity.size { return try copyWithoutHoles(to: output) }
        return try withUnsafeTemporaryAllocation(byteCount: Self.piece, alignment: 16) { buffer throws(CopyFailure) in
            lseek(descriptor, 0, SEEK_SET)
            var digest = FileDigest(size: Int(identity.size))
            var total: Int64 = 0
            while total <= identity.size {
                guard let count = fill(buffer) else { throw .reading }
                if count == 0 { break }
                let read = UnsafeRawBufferPointer(rebasing: buffer[..<count])
                digest.mix(read)
                guard Self.write(read, to: output) else { throw .writing }
                total += Int64(count)
                if count < buffer.count { break }
            }
            return Copied(size: total, digest: digest.value)
        }
    }

    /// Linux's `SEEK_DATA` and `SEEK_HOLE`, which Swift's Glibc module does not export.
    private static let seekData: Int32 = 3
    private static let seekHole: Int32 = 4

    private func copyWithoutHoles(to output: Int32) throws(CopyFailure) -> Copied {
        try withUnsafeTemporaryAllocation(byteCount: Self.piece, alignment: 16) { buffer throws(CopyFailure) in
            let size = off_t(identity.size)
            var end: off_t = 0
            while end < size {
                // A file system without support for holes reports the whole file as data.
                let start = lseek(descriptor, end, Self.seekData)
                guard start >= 0 else {
                    guard errno == ENXIO else { throw .reading }
                    break
                }
                end = lseek(descriptor, start, Self.seekHole)
                guard end >= 0, lseek(descriptor, start, SEEK_SET) >= 0, lseek(output, start, SEEK_SET) >= 0 else {
                    throw .reading
                }
                var left = Int(min(end, size) - start)
                while left > 0 {
                    guard let count = fill(UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(left, buffer.count)]))
                    else { throw .reading }
                    if count == 0 { return Copied(size: Int64(size) - Int64(left), digest: nil) }  // It was truncated.
                    let read = UnsafeRawBufferPointer(rebasing: buffer[..<count])
                    guard Self.write(read, to: output) else { throw .writing }
                    left -= count
                }
            }
            guard ftruncate(output, size) == 0 else { throw .writing }
            return Copied(size: Int64(size), digest: nil)
        }
    }

    /// The size of the pieces that are copied, in bytes. Larger writes are slower, since the kernel uses larger pages
    /// for them.
    private static var piece: Int { 1 << 16 }

    /// Reads until the buffer is full or the file ends. Returns the number of bytes, or `nil` with `errno` set on
    /// failure.
    private func fill(_ buffer: UnsafeMutableRawBufferPointer) -> Int? {
        var count = 0
        while count < buffer.count {
            let step = read(descriptor, buffer.baseAddress! + count, buffer.count - count)
            if step < 0, errno == EINTR { continue }
            guard step >= 0 else { return nil }
            if step == 0 { break }
            count += step
        }
        return count
    }

    /// Writes all bytes. Returns false with `errno` set on failure.
    static func write(_ bytes: UnsafeRawBufferPointer, to output: Int32) -> Bool {
        var written = 0
        while written < bytes.count {
            let step = Glibc.write(output, bytes.baseAddress! + written, bytes.count - written)
            if step < 0, errno == EINTR { continue }
            guard step > 0 else { return false }
            written += step
        }
        return true
    }

    /// Returns the digest of the file's content, or `nil` with `errno` set if it cannot be read completely. The file is
    /// not mapped, since reading a mapped file that another process truncates would kill this process.
    func digest() -> UInt64? {
        let size = Int(identity.size)
        var digest = FileDigest(size: size)
        let isWhole = withUnsafeTemporaryAllocation(byteCount: Self.piece, alignment: 16) { buffer in
            lseek(descriptor, 0, SEEK_SET)
            var offset = 0
            while offset < size {
                guard let count = fill(buffer) else { return false }
                guard count > 0 else {
                    errno = EIO
                    return false
                }
                digest.mix(UnsafeRawBufferPointer(rebasing: buffer[..<min(count, size - offset)]))
                offset += count
            }
            return true
        }
        return isWhole ? digest.value : nil
    }

    /// Returns the whole content of the file.
    ///
    /// - Throws: `unreadable`; `invalidFile` if the file is longer than `limit` bytes.
    func contents(limit: Int) throws(PluginError) -> [UInt8] {
        let size = Int(identity.size)
        guard size <= limit else {
            throw PluginError(.invalidFile, "\(path) is \(size) bytes long; at most \(limit) are accepted.")
        }
        var code: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            while count < size {
                let step = pread(descriptor, buffer.baseAddress! + count, size - count, off_t(count))
                if step < 0 { code = errno }
                guard step > 0 else { return }
                count += step
            }
        }
        guard code == 0 else { throw PluginError(.unreadable, "\(path) cannot be read: \(describe(errno: code)).") }
        return bytes
    }

    private func failed(to destination: String) -> PluginError {
        let code = errno
        let advice = code == ENOSPC || code == EDQUOT ? " Make room, or set TMPDIR to another folder." : ""
        return PluginError(
            .stagingFailed, "\(path) cannot be copied to \(destination): \(describe(errno: code)).\(advice)")
    }
}

/// A file that belongs to the host, mapped for reading.
struct MappedFile: ~Copyable {
    let bytes: UnsafeRawBufferPointer

    /// Maps a file.
    ///
    /// - Throws: `stagingFailed`.
    init(_ path: String) throws(PluginError) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        var status = stat()
        guard descriptor >= 0, fstat(descriptor, &status) == 0 else {
            let code = errno
            if descriptor >= 0 { close(descriptor) }
            throw PluginError(.stagingFailed, "\(path) cannot be read: \(describe(errno: code)).")
        }
        defer { close(descriptor) }
        let size = Int(status.st_size)
        if size == 0 {
            bytes = UnsafeRawBufferPointer(start: nil, count: 0)
            return
        }
        guard let address = mmap(nil, size, PROT_READ, MAP_PRIVATE, descriptor, 0), address != MAP_FAILED else {
            throw PluginError(.stagingFailed, "\(path) cannot be mapped: \(describe(errno: errno)).")
        }
        // Sound: only this process can write the file, and it does not.
        bytes = UnsafeRawBufferPointer(start: address, count: size)
    }

    deinit { if let address = bytes.baseAddress { munmap(UnsafeMutableRawPointer(mutating: address), bytes.count) } }
}

/// The copy of one file.
struct Copy {
    let path: String
    let original: String
    let identity: FileIdentity
    let digest: UInt64
    let size: Int
    let image: ELFImage

    /// Returns the copy under another path.
    func linked(as path: String) -> Copy {
        Copy(path: path, original: original, identity: identity, digest: digest, size: size, image: image)
    }
}
