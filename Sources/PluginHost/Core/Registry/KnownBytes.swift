import CPluginHost
import Glibc

/// Memory from `malloc` with the content of a file, freed with this object.
final class KnownBytes: @unchecked Sendable {
    // Sound: the memory is never written to.
    let all: UnsafeRawBufferPointer

    init(_ start: UnsafeMutableRawPointer, count: Int) { all = UnsafeRawBufferPointer(start: start, count: count) }

    /// Reads a file from its beginning.
    ///
    /// - Parameter count: The size of the file in bytes. If fewer can be read, the result is `nil`.
    convenience init?(reading descriptor: Int32, count: Int) {
        guard let memory = malloc(max(1, count)) else { return nil }
        self.init(memory, count: count)
        var done = 0
        while done < count {
            let step = pread(descriptor, memory + done, count - done, done)
            if step < 0, errno == EINTR { continue }
            guard step > 0 else { return nil }
            done += step
        }
    }

    deinit { free(UnsafeMutableRawPointer(mutating: all.baseAddress)) }
}
