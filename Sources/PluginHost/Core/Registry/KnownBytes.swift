import CPluginHost
import Glibc

/// Memory from `malloc` with the content of a file, freed with this object.
final class KnownBytes: @unchecked Sendable {
    // Sound: the memory is never written to.
    let all: UnsafeRawBufferPointer

    init(_ start: UnsafeMutableRawPointer, count: Int) { all = UnsafeRawBufferPointer(start: start, count: count) }

    deinit { free(UnsafeMutableRawPointer(mutating: all.baseAddress)) }
}
