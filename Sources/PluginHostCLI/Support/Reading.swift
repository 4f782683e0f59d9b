internal import Glibc

/// Reads what a descriptor has next, and waits until there is something. The corresponding C function is `read`; returns
/// how many bytes there were: 0 at the end, less where it leaves a reason in `errno`.
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
