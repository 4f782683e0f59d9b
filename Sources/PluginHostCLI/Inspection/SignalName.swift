internal import Glibc

/// The names of the signals that end programs.
enum SignalName {
    /// "SIGSEGV (Segmentation fault)".
    static func of(_ signal: Int32) -> String {
        let text = strsignal(signal).map { String(cString: $0) } ?? "unknown"
        return "\(names[signal] ?? "signal \(signal)") (\(text))"
    }

    private static let names: [Int32: String] = [
        SIGABRT: "SIGABRT", SIGALRM: "SIGALRM", SIGBUS: "SIGBUS", SIGFPE: "SIGFPE", SIGHUP: "SIGHUP",
        SIGILL: "SIGILL", SIGINT: "SIGINT", SIGKILL: "SIGKILL", SIGPIPE: "SIGPIPE", SIGQUIT: "SIGQUIT",
        SIGSEGV: "SIGSEGV", SIGSYS: "SIGSYS", SIGTERM: "SIGTERM", SIGTRAP: "SIGTRAP", SIGXCPU: "SIGXCPU",
        SIGXFSZ: "SIGXFSZ",
    ]
}
