internal import FoundationEssentials
internal import Glibc
internal import PluginABI
internal import PluginHost

/// A child process that reports over a private socket. ``collect(deadline:)`` also kills all other processes of its
/// group.
struct ChildProcess {
    /// The descriptor on which the child writes its report.
    static let reportDescriptor: CInt = 3

    enum Ending: Equatable, CustomStringConvertible {
        case exited(Int32)
        case killed(signal: Int32)
        case overdue

        /// How the process ended, as a part of a sentence.
        var description: String {
            switch self {
            case .exited(let code): "exited with code \(code)"
            case .killed(let signal): "crashed with \(SignalName.of(signal))"
            case .overdue: "did not end in time"
            }
        }
    }

    /// The maximum number of bytes of a report that are read.
    private static let reportLimit = 64 << 20

    private let process: pid_t
    private let report: CInt

    /// Starts this program or another one. Its standard output goes to the standard error of this process.
    init(executable: String = "/proc/self/exe", arguments: [String]) throws(PluginError) {
        var environment = ProcessInfo.processInfo.environment
        // A crash is an expected result; a backtrace by the Swift runtime would only delay it.
        environment["SWIFT_BACKTRACE"] = "enable=no"
        var pair: [CInt] = [-1, -1]
        guard socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &pair) == 0 else {
            throw Self.failure(errno)
        }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, 2, 1)
        posix_spawn_file_actions_adddup2(&actions, pair[1], Self.reportDescriptor)

        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        for signal in [SIGINT, SIGTERM, SIGPIPE] { sigaddset(&signals, signal) }
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setpgroup(&attributes, 0)
        let flags = CInt(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK)
        posix_spawnattr_setflags(&attributes, Int16(flags))

        var words = arguments.map { strdup($0) } + [nil]
        var variables = environment.map { strdup("\($0)=\($1)") } + [nil]
        defer { for word in words + variables { free(word) } }
        var process: pid_t = 0
        let error = posix_spawn(&process, executable, &actions, &attributes, &words, &variables)
        close(pair[1])
        guard error == 0 else {
            close(pair[0])
            throw Self.failure(error)
        }
        (self.process, report) = (process, pair[0])
    }

    /// Reads the report, and waits until the process has ended or `deadline` has passed. Then kills the whole group.
    consuming func collect(deadline: Duration) -> (report: [UInt8], ending: Ending) {
        let end = ContinuousClock.now + deadline
        var bytes: [UInt8] = []
        var isOpen = true
        // Short at first, so that a quick child is collected quickly.
        var pause: CInt = 1
        while !hasEnded, ContinuousClock.now < end {
            var ready = pollfd(fd: isOpen ? report : -1, events: Int16(POLLIN), revents: 0)
            if poll(&ready, 1, pause) > 0 {
                isOpen = readReport(into: &bytes)
            } else {
                pause = min(pause * 2, 20)
            }
        }
        let isOverdue = !hasEnded
        // The leader is not reaped yet, so the number cannot belong to another group.
        kill(-process, SIGKILL)
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        while isOpen { isOpen = readReport(into: &bytes) }
        close(report)
        if isOverdue { return (bytes, .overdue) }
        let signal = status & 0x7F
        return (bytes, signal == 0 ? .exited(status >> 8 & 0xFF) : .killed(signal: signal))
    }

    private var hasEnded: Bool {
        var info = siginfo_t()
        return waitid(P_PID, id_t(process), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_signo != 0
    }

    /// Reads available bytes without waiting. Returns false if there are none, at the end, and beyond the limit.
    private func readReport(into bytes: inout [UInt8]) -> Bool {
        var chunk = [UInt8](repeating: 0, count: 64 << 10)
        let count = recv(report, &chunk, chunk.count, Int32(MSG_DONTWAIT))
        guard count > 0, bytes.count < Self.reportLimit else { return false }
        bytes += chunk[..<count]
        return true
    }

    private static func failure(_ code: CInt) -> PluginError {
        // The program starts itself through its link in /proc.
        if code == ENOENT, access("/proc/self", F_OK) != 0 {
            return PluginError(
                .processFailed,
                "A process cannot be started: /proc is not mounted. Mount it: mount -t proc proc /proc")
        }
        let limits =
            switch code {
            case EAGAIN, ENOMEM: " \(ProcessLimits.ofThreads)"
            case EMFILE, ENFILE: " \(ProcessLimits.ofDescriptors)"
            default: ""
            }
        return PluginError(.processFailed, "A process cannot be started: \(String(cString: strerror(code))).\(limits)")
    }
}
