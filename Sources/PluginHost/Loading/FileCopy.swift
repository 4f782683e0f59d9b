internal import CPluginHost
internal import Glibc
internal import PluginABI

/// A file that was opened once, and everything that is then asked of it: never the path again.
struct SourceFile: ~Copyable {
    let path: String
    private let descriptor: Int32
    private let status: stat

    /// More than any module has.
    private static let sizeLimit: Int64 = 1 << 30

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
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            status.st_size <= Self.sizeLimit
        else {
            close(descriptor)
            if status.st_mode & S_IFMT != S_IFREG { throw Self.wrongKind(path, status) }
            throw PluginError(
                .invalidFile, "\(path) is \(status.st_size) bytes long; at most \(Self.sizeLimit) are accepted.")
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
        /// As ``MappedFile/digest``; nil where the bytes were not seen.
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

    /// Copies it to a file that is open and empty: without its bytes where the file system lets files share them, else
    /// piece by piece, each of which stays in the processor's cache from its reading to its writing.
    func copy(to output: Int32) throws(CopyFailure) -> Copied {
        if plugin_host_share_bytes(descriptor, output) == 0 {
            var status = stat()
            guard fstat(output, &status) == 0 else { throw .writing }
            return Copied(size: Int64(status.st_size), digest: nil)
        }
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

    /// Of its content, as ``MappedFile/digest``; nil, with `errno`, where it cannot be read to its end. Not mapped: what
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

    var digest: UInt64 {
        var digest = FileDigest(size: bytes.count)
        digest.mix(bytes)
        return digest.value
    }
}

/// A 64-bit digest, the same in every process. It tells files apart that differ by accident or by a new build.
///
/// Four words at a time, each into a state of its own, so that a processor multiplies them at once.
struct FileDigest {
    private var states: (UInt64, UInt64, UInt64, UInt64)

    /// - Parameter size: Of the file, in bytes.
    init(size: Int) {
        let seed = UInt64(size) ^ 0x9E37_79B9_7F4A_7C15
        states = (seed, ~seed, seed &+ 1, ~seed &- 1)
    }

    var value: UInt64 { Self.mix(Self.mix(states.0, states.1), Self.mix(states.2, states.3)) }

    /// Takes the next part of the file; a multiple of 32 bytes, unless it is the last.
    mutating func mix(_ bytes: UnsafeRawBufferPointer) {
        var offset = 0
        var states = states
        while offset + 32 <= bytes.count {
            states.0 = Self.mix(states.0, Self.word(bytes, offset))
            states.1 = Self.mix(states.1, Self.word(bytes, offset + 8))
            states.2 = Self.mix(states.2, Self.word(bytes, offset + 16))
            states.3 = Self.mix(states.3, Self.word(bytes, offset + 24))
            offset += 32
        }
        while offset + 8 <= bytes.count {
            states.0 = Self.mix(states.0, Self.word(bytes, offset))
            offset += 8
        }
        if offset < bytes.count { states.1 = Self.mix(states.1, bytes[offset...].reduce(0) { $0 << 8 | UInt64($1) }) }
        self.states = states
    }

    mutating func mix(_ word: UInt64) { states.0 = Self.mix(states.0, word) }

    @inline(__always)
    private static func word(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt64 {
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    @inline(__always)
    private static func mix(_ state: UInt64, _ word: UInt64) -> UInt64 {
        let product = (state ^ word).multipliedFullWidth(by: 0xD6E8_FEB8_6659_FD93)
        return product.high ^ product.low &+ 0x9E37_79B9_7F4A_7C15
    }
}
