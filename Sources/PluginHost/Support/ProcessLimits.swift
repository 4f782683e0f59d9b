import FoundationEssentials
import Glibc
import PluginFile

/// The system's limits for this process and how much of them is used, for errors that name the limit that was reached.
package enum ProcessLimits {
    /// The number of memory maps that the kernel allows a process; `nil` if it is unknown.
    static var mapsLimit: Int? { number(in: "/proc/sys/vm/max_map_count") }

    /// Returns the number of memory maps of this process; `nil` without `/proc`. Takes about a microsecond for each
    /// map.
    static func countMaps() -> Int? {
        let file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        return withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 1) { buffer in
            var lines = 0
            while case let count = read(file, buffer.baseAddress, buffer.count), count > 0 {
                let end = buffer.baseAddress! + count
                var rest = buffer.baseAddress!
                while rest < end, let newline = memchr(rest, CInt(UInt8(ascii: "\n")), end - rest) {
                    lines += 1
                    rest = newline + 1
                }
            }
            return lines
        }
    }

    /// The limits of threads and processes, and what to do if one is reached.
    package static var ofThreads: String {
        let threads = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count
        let limits: [String?] = [
            "RLIMIT_NPROC \(soft(__RLIMIT_NPROC)) (ulimit -u)",
            number(in: "/proc/sys/kernel/threads-max").map { "kernel.threads-max \($0)" },
            number(in: "/sys/fs/cgroup/pids.max").map { "pids.max of the control group \($0)" },
            ofMemory,
        ]
        return "\(threads.map { "This process has \($0) threads. " } ?? "")Limits: "
            + limits.compactMap(\.self).joined(separator: ", ")
            + ". End threads or processes, or raise the limit that is reached."
    }

    /// The limits on memory, as text for a message.
    static var ofMemory: String {
        let maps = mapsLimit.map { "vm.max_map_count \($0) (\(countMaps() ?? 0) used), " } ?? ""
        return "\(maps)RLIMIT_AS \(soft(RLIMIT_AS)) (ulimit -v)"
    }

    /// A sentence that states the limit on open files.
    package static var ofDescriptors: String {
        "The limit is RLIMIT_NOFILE, \(soft(RLIMIT_NOFILE)) (ulimit -n), or fs.file-max for all processes."
    }

    /// Explains a message of the dynamic linker, if a limit is the cause.
    static func explanation(of reason: String) -> String {
        if reason.contains("Too many open files") { return " \(ofDescriptors)" }
        let signs = ["failed to map", "allocate memory", "cannot create", "out of memory", "cannot map"]
        let reason = reason.lowercased()
        guard signs.contains(where: reason.contains) else { return "" }
        return " The process has no memory or no memory maps left. Limits: \(ofMemory). Restart the host, which frees "
            + "the memory of replaced modules, or raise the limit that is reached."
    }

    /// The number of descriptors that the process may have.
    static var descriptors: Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 0 }
        return Int(clamping: limit.rlim_cur)
    }

    private static func soft(_ resource: __rlimit_resource) -> String {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(resource.rawValue), &limit) == 0 else { return "unknown" }
        return limit.rlim_cur == rlim_t.max ? "unlimited" : "\(limit.rlim_cur)"
    }

    private static func number(in file: String) -> Int? {
        guard let text = try? String(contentsOfFile: file, encoding: .utf8) else { return nil }
        return Int(text.trimmed)
    }
}
