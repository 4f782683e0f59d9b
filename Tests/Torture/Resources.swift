import Foundation

/// The resources of a process, according to the kernel.
struct Resources {
    let descriptors: Int
    /// The children that it has started and not reaped.
    let children: Int
    let threads: Int
    /// The resident memory, and the size of the address space, in KiB.
    let memory: Int
    let addresses: Int

    init(of process: pid_t) {
        let path = "/proc/\(process)"
        func names(_ folder: String) -> [String] {
            (try? FileManager.default.contentsOfDirectory(atPath: "\(path)/\(folder)")) ?? []
        }
        let tasks = names("task")
        let status = text("\(path)/status").split(separator: "\n")
        func number(_ name: String) -> Int {
            let line = status.first { $0.hasPrefix(name) }
            return line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } ?? 0
        }
        descriptors = names("fd").count
        children = tasks.reduce(0) { $0 + text("\(path)/task/\($1)/children").split(separator: " ").count }
        threads = tasks.count
        (memory, addresses) = (number("VmRSS:"), number("VmSize:"))
    }
}

/// The processes that have a file of a folder in their arguments, such as hosts and their workers, without zombies.
func processes(of folder: Folder) -> [pid_t] {
    let name = (folder.path as NSString).lastPathComponent + "/"
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
    return names.compactMap { pid_t($0) }.filter { $0 != getpid() && text("/proc/\($0)/cmdline").contains(name) }
}

/// Checks, after the end of a host, that its processes end within a second.
func requireEnd(of folder: Folder) throws {
    if eventually(within: 1, { processes(of: folder).isEmpty }) { return }
    let left = processes(of: folder)
    let lines = left.map { text("/proc/\($0)/cmdline").replacing("\0", with: " ") }
    for process in left { kill(process, SIGKILL) }
    throw Finding(message: "a second after the end of the host there are \(lines)")
}

/// A file as text; empty if it cannot be read.
func text(_ path: String) -> String {
    String(decoding: FileManager.default.contents(atPath: path) ?? Data(), as: UTF8.self)
}
