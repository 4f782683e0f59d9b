internal import Glibc

/// Reads the next bytes of a descriptor, like `read`, and waits until there are any. Returns the number of bytes: 0 at
/// the end, negative if `read` fails, with the reason in `errno`.
func readMore(_ descriptor: CInt, into bytes: inout [UInt8]) -> Int {
    withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 1) { chunk in
        while true {
            let count = read(descriptor, chunk.baseAddress, chunk.count)
            if count < 0, errno == EINTR { continue }
            if count > 0 { bytes += chunk[..<count] }
            return count
        }
    }
}
