import CDispatch
import CPluginHost
import Glibc
import PluginABI
import PluginFile

/// A file that was opened once, and everything that is then asked of it: never the path again.
struct SourceFile: ~Copyable {
    let path: String
    private let descriptor: Int32
    private let status: stat

    /// Opens without blocking: a FIFO without a writer, or a device, must not hold up the host.
    ///
    /// - Throws: `unreadable`, or `invalidFile` for what is no regular file.
    init(opening path: String) throws(PluginError) {
        let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else {
            let code = errno
            // A socket cannot be opened at all: say what it is.
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
        self.path = path
        self.descriptor = descriptor
        self.status = status
    }

    deinit { close(descriptor) }

    var identity: FileIdentity { FileIdentity(status) }

    private static func wrongKind(_ path: String, _ status: stat) -> PluginError {
        PluginError(.invalidFile, "\(path) is \(fileKind(mode: status.st_mode)), not a regular file.")
    }

    /// Throws `untrusted` if others than root and the process's user could have written it.
    func checkTrust() throws(PluginError) {
        try Trust.check(fileDescriptor: descriptor, path: path)
    }

    /// Checks what says where everything else in it is, without reading more of it.
    ///
    /// - Parameter bytesRead: Gets how many bytes were read in addition.
    /// - Throws: `invalidFile` for what cannot be a shared library; `unreadable`; `stagingFailed` where there is no
    ///   memory.
    func checkTables(_ bytesRead: inout Int) throws(PluginError) {
        let window = try FileWindow(descriptor, size: Int(identity.size), path: path)
        defer { bytesRead += window.bytesRead }
        do throws(PluginError) {
            try ELFImage.checkTables(of: ELFBytes(window, path: path))
        } catch {
            guard window.failure == 0 else {
                throw PluginError(.unreadable, "\(path) cannot be read: \(describe(errno: window.failure)).")
            }
            throw error
        }
    }

    /// Whether some process has it open for writing. The kernel grants a read lease only if nobody has; where it
    /// does not know (other file systems, other people's files) the answer is false.
    func isBeingWritten() -> Bool { plugin_host_is_being_written(descriptor) == 1 }

    /// Whether it changed since it was opened.
    func hasChanged() -> Bool {
        var now = stat()
        return fstat(descriptor, &now) != 0 || FileIdentity(now).size != identity.size
            || FileIdentity(now).modified != identity.modified
    }

    /// What was copied.
    struct Copied {
        /// In bytes: another number than the file's size if it is being changed.
        let size: Int64
        /// As ``SourceFile/digest()``; nil where the bytes were not seen.
        let digest: UInt64?
    }

    /// Copies it to a new file of mode 0500.
    ///
    /// - Throws: `unreadable`, or `stagingFailed` if the copy cannot be written.
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
                throw PluginError(.unreadable, "\(path) cannot be read to its end: \(describe(errno: errno)).")
            case .writing: throw failed(to: destination)
            }
        }
    }

    /// Which side of a copy has failed; `errno` says why.
    enum CopyFailure: Error { case reading, writing }

    /// Copies it to a file that is open and empty: without its bytes where the file system lets files share them, without
    /// its holes where it has some, else piece by piece, each of which stays in the processor's cache from its reading to
    /// its writing.
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

    /// SEEK_DATA and SEEK_HOLE of Linux, which Swift's Glibc does not show.
    private static let seekData: Int32 = 3
    private static let seekHole: Int32 = 4

    private func copyWithoutHoles(to output: Int32) throws(CopyFailure) -> Copied {
        try withUnsafeTemporaryAllocation(byteCount: Self.piece, alignment: 16) { buffer throws(CopyFailure) in
            let size = off_t(identity.size)
            var end: off_t = 0
            while end < size {
                // A file system that knows of no holes says that all is content.
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
                    if count == 0 { return Copied(size: Int64(size) - Int64(left), digest: nil) }  // It was cut short.
                    let read = UnsafeRawBufferPointer(rebasing: buffer[..<count])
                    guard Self.write(read, to: output) else { throw .writing }
                    left -= count
                }
            }
            guard ftruncate(output, size) == 0 else { throw .writing }
            return Copied(size: Int64(size), digest: nil)
        }
    }

    /// In bytes. Larger writes are slower: the kernel takes larger pages for them.
    private static var piece: Int { 1 << 16 }

    /// Reads on until the buffer is full or the file ends; nil, with `errno`, where it cannot be read.
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

    /// All of it; false, with `errno`, where that cannot be.
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

    /// Of its content; nil, with `errno`, where it cannot be read to its end. Not mapped: what
    /// others can cut short would kill who reads it.
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

    /// Everything that is in it now.
    ///
    /// - Throws: `unreadable`; `invalidFile` for more than `limit` bytes.
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

/// A file of the host's own, mapped to be read.
struct MappedFile: ~Copyable {
    let bytes: UnsafeRawBufferPointer

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
        // Sound: nobody but this process can write the file, and it does not.
        bytes = UnsafeRawBufferPointer(start: address, count: size)
    }

    deinit { if let address = bytes.baseAddress { munmap(UnsafeMutableRawPointer(mutating: address), bytes.count) } }
}
