import Foundation
import Synchronization

/// The program `pluginhost-gateway`, started by a test.
///
/// Without `Process` of Foundation, which fails if very many descriptors are open.
final class Program: Sendable {
    private struct Child {
        let process: pid_t
        /// What `waitpid` has returned; `nil` while the program runs.
        var status: Int32?

        mutating func look(_ options: Int32 = WNOHANG) {
            var found: Int32 = 0
            if status == nil, waitpid(process, &found, options) == process { status = found }
        }
    }

    private let child: Mutex<Child>
    private let output = Output()
    private let errors = Output()

    private final class Output: Sendable {
        let text = Mutex("")

        /// Reads a pipe to its end on a separate thread.
        func read(_ pipe: Pipe) {
            let handle = pipe.fileHandleForReading
            Thread.detachNewThread { [self] in
                while case let data = handle.availableData, !data.isEmpty {
                    text.withLock { $0 += String(decoding: data, as: UTF8.self) }
                }
            }
        }
    }

    init(_ arguments: [String]) throws {
        let (out, err) = (Pipe(), Pipe())
        let process = try Self.spawn(["\(buildFolder)/pluginhost-gateway"] + arguments) { actions in
            posix_spawn_file_actions_adddup2(&actions, out.fileHandleForWriting.fileDescriptor, 1)
            posix_spawn_file_actions_adddup2(&actions, err.fileHandleForWriting.fileDescriptor, 2)
        }
        child = Mutex(Child(process: process))
        try out.fileHandleForWriting.close()
        try err.fileHandleForWriting.close()
        output.read(out)
        errors.read(err)
    }

    deinit {
        child.withLock { child in
            child.look()
            guard child.status == nil else { return }
            kill(child.process, SIGKILL)
            child.look(0)
        }
    }

    var text: String { output.text.withLock { $0 } }
    var errorText: String { errors.text.withLock { $0 } }

    /// The port that the program listens on.
    func port() async -> Int? {
        _ = await becomesTrue { text.contains("\n") || hasEnded }
        return text.split(separator: "\n").first?.split(separator: ":").last.flatMap { Int($0) }
    }

    var hasEnded: Bool {
        child.withLock { child in
            child.look()
            return child.status != nil
        }
    }

    func send(_ signal: Int32) { child.withLock { if $0.status == nil { kill($0.process, signal) } } }

    /// Waits until the program ends, and returns its exit status; `nil` if a signal ended it, or if it does not end.
    func end() async -> Int32? {
        guard await becomesTrue({ hasEnded }) else { return nil }
        return child.withLock(\.status).flatMap { $0 & 0x7F == 0 ? $0 >> 8 & 0xFF : nil }
    }

    /// Starts a program, which gets the descriptors that `redirect` gives it, and no others.
    private static func spawn(
        _ arguments: [String], _ redirect: (inout posix_spawn_file_actions_t) -> Void
    ) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        redirect(&actions)
        for descriptor in Int32(3)..<8192 where fcntl(descriptor, F_GETFD) >= 0 {
            posix_spawn_file_actions_addclose(&actions, descriptor)
        }
        // The threads of the tests block and ignore signals.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var (none, all) = (sigset_t(), sigset_t())
        sigemptyset(&none)
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var words = arguments.map { strdup($0) } + [nil]
        var settings = ProcessInfo.processInfo.environment.map { strdup("\($0)=\($1)") } + [nil]
        defer { for word in words + settings { free(word) } }
        var process: pid_t = 0
        let failure = posix_spawn(&process, arguments[0], &actions, &attributes, &words, &settings)
        guard failure == 0 else { throw POSIXError(.init(rawValue: failure) ?? .EIO) }
        return process
    }

    /// Runs a program to its end and returns what it writes, and its exit status.
    static func run(_ arguments: [String]) async throws -> (output: String, status: Int32) {
        try await onThread {
            let file = try makeFolder() + "/output"
            let process = try spawn(["/usr/bin/env"] + arguments) { actions in
                posix_spawn_file_actions_addopen(&actions, 1, file, O_WRONLY | O_CREAT, 0o600)
                posix_spawn_file_actions_adddup2(&actions, 1, 2)
            }
            var status: Int32 = 0
            while waitpid(process, &status, 0) < 0 {
                guard errno == EINTR else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
            }
            let hasExited = status & 0x7F == 0
            return (
                try String(contentsOfFile: file, encoding: .utf8), hasExited ? status >> 8 & 0xFF : status & 0x7F
            )
        }
    }
}

/// Runs a body that blocks on a separate thread.
func onThread<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Result, any Error>) in
        Thread.detachNewThread { continuation.resume(with: Swift.Result { try body() }) }
    }
}
