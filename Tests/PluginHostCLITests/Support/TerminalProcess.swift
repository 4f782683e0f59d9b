import Foundation
import Glibc

@testable import TestSupport

/// A program at its own terminal, `pluginhost` by default; its process ends when this object is deinitialized.
final class TerminalProcess {
    private let process: pid_t
    private let terminal: Int32
    private let name: String
    private var read = Data()
    /// The number of bytes of its output that `shows` has passed.
    private var passed = 0
    private var status: Int32?

    /// - Parameter program: The path of the program; `nil` for `pluginhost`.
    init(_ arguments: [String], program: String? = nil, environment: [String: String]) throws {
        let program = program ?? built("pluginhost")
        terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        var (locked, number): (Int32, UInt32) = (0, 0)
        let (unlock, getNumber): (UInt, UInt) = (0x4004_5431, 0x8004_5430)  // TIOCSPTLCK, TIOCGPTN
        guard terminal >= 0, ioctl(terminal, unlock, &locked) == 0, ioctl(terminal, getNumber, &number) == 0 else {
            throw POSIXError(.ENODEV)
        }
        name = "/dev/pts/\(number)"
        var size = winsize(ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0)
        _ = ioctl(terminal, UInt(TIOCSWINSZ), &size)
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        // The first terminal that the leader of a session opens becomes its controlling terminal.
        for descriptor in Int32(0)...2 {
            posix_spawn_file_actions_addopen(&actions, descriptor, name, O_RDWR, 0)
        }
        for descriptor in Int32(3)..<512 { posix_spawn_file_actions_addclose(&actions, descriptor) }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        let newSession: Int32 = 0x80  // POSIX_SPAWN_SETSID, which Glibc's headers hide from Swift
        posix_spawnattr_setflags(&attributes, Int16(newSession | POSIX_SPAWN_SETSIGDEF))
        let variables = ["PATH": "/usr/bin:/bin", "TERM": "xterm"]
            .merging(ProgramProcess.sanitizerOptions) { $1 }.merging(environment) { $1 }
        var words = ([program] + arguments).map { strdup($0) } + [nil]
        var settings = variables.map { strdup("\($0)=\($1)") } + [nil]
        defer { for word in words + settings { free(word) } }
        var process: pid_t = 0
        let failure = posix_spawn(&process, program, &actions, &attributes, &words, &settings)
        guard failure == 0 else { throw POSIXError(.init(rawValue: failure) ?? .EIO) }
        self.process = process
    }

    deinit {
        if status == nil {
            kill(process, SIGKILL)
            waitpid(process, nil, 0)
        }
        close(terminal)
    }

    /// Types a text.
    func type(_ text: String) { _ = Array(text.utf8).withUnsafeBytes { write(terminal, $0.baseAddress, $0.count) } }

    /// Waits for a text in the output, after the text that an earlier call found; false if the output ends before.
    func shows(_ text: String) -> Bool {
        while true {
            if let found = read[passed...].firstRange(of: Data(text.utf8)) {
                passed = found.upperBound
                return true
            }
            if !readMore() { return false }
        }
    }

    /// All its output so far.
    var output: String { String(decoding: read, as: UTF8.self) }

    func signal(_ number: Int32) { kill(process, number) }

    /// Stops the output of the terminal, as Ctrl-S does. Returns whether it is stopped.
    func stopOutput() -> Bool {
        let side = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC)
        defer { close(side) }
        type("\u{13}")
        return eventually {
            var output = pollfd(fd: side, events: Int16(POLLOUT), revents: 0)
            return poll(&output, 1, 0) == 0
        }
    }

    /// Waits until the process has ended, and returns its status as `waitpid` does; -1 if it does not end.
    func wait() -> Int32 {
        while readMore() {}
        var status: Int32 = 0
        guard eventually({ waitpid(process, &status, WNOHANG) == process }) else { return -1 }
        self.status = status
        return status
    }

    /// Whether the terminal shows what is typed, as it does for programs that do not edit lines.
    var echoes: Bool {
        var settings = termios()
        return tcgetattr(terminal, &settings) == 0 && settings.c_lflag & tcflag_t(ECHO) != 0
    }

    /// Reads more of its output; false at the end, or if none arrives for a minute.
    private func readMore() -> Bool {
        var ready = pollfd(fd: terminal, events: Int16(POLLIN), revents: 0)
        guard poll(&ready, 1, 60_000) > 0 else { return false }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = Glibc.read(terminal, &bytes, bytes.count)
        guard count > 0 else { return false }
        read.append(contentsOf: bytes[..<count])
        return true
    }
}
