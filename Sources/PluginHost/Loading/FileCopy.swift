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

    /// Copies it to a new file of mode 0500. Returns how many bytes there were: another number than its size if it is
    /// being changed.
    ///
    /// - Throws: `stagingFailed`.
    func copy(to destination: String) throws(PluginError) -> Int64 {
        let output = open(destination, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o700)
        guard output >= 0 else { throw failed(to: destination) }
        defer { close(output) }
        var total: Int64 = 0
        var isCopiedByKernel = true
        while total <= identity.size {
            let chunk = 1 << 20
            var count = isCopiedByKernel ? plugin_host_copy_range(descriptor, output, chunk) : -1
            if count < 0 {
                isCopiedByKernel = false
                count = copyThroughMemory(to: output, chunk)
            }
            guard count >= 0 else { throw failed(to: destination) }
            if count == 0 { break }
            total += Int64(count)
        }
        guard fchmod(output, 0o500) == 0 else { throw failed(to: destination) }
        return total
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

    private func copyThroughMemory(to output: Int32, _ chunk: Int) -> Int {
        withUnsafeTemporaryAllocation(byteCount: chunk, alignment: 16) { buffer in
            let count = read(descriptor, buffer.baseAddress, chunk)
            var written = 0
            while written < count {
                let step = write(output, buffer.baseAddress! + written, count - written)
                guard step > 0 else { return -1 }
                written += step
            }
            return count
        }
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

    /// A 64-bit digest, the same in every process. It tells files apart that differ by accident or by a new build.
    var digest: UInt64 {
        var digest = UInt64(bytes.count) ^ 0x9E37_79B9_7F4A_7C15
        func mix(_ word: UInt64) {
            let product = (digest ^ word).multipliedFullWidth(by: 0xD6E8_FEB8_6659_FD93)
            digest = product.high ^ product.low &+ 0x9E37_79B9_7F4A_7C15
        }
        var offset = 0
        while offset + 8 <= bytes.count {
            mix(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)))
            offset += 8
        }
        mix(bytes[offset...].reduce(0) { $0 << 8 | UInt64($1) })
        return digest
    }
}
