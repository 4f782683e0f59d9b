import Glibc
import Testing

/// Opens all descriptors that this process may have, but some, and returns them. At most 256 may be open afterwards, so
/// that this is for a process of its own.
func useUpDescriptors(leaving free: Int) throws -> [Int32] {
    var limit = rlimit(rlim_cur: 256, rlim_max: 256)
    try #require(getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
    limit.rlim_cur = 256
    try #require(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
    var used: [Int32] = []
    while case let descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC), descriptor >= 0 { used.append(descriptor) }
    for _ in 0..<free { close(used.removeLast()) }
    return used
}
