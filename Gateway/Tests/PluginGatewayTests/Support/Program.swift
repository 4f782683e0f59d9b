import Foundation
import Synchronization

/// The program `pluginhost-gateway`, started by a test.
final class Program: Sendable {
    private let process: Mutex<Process>
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
        let process = Process()
        process.executableURL = URL(filePath: "\(buildFolder)/pluginhost-gateway")
        process.arguments = arguments
        let (out, err) = (Pipe(), Pipe())
        (process.standardOutput, process.standardError) = (out, err)
        self.process = Mutex(process)
        try self.process.withLock { try $0.run() }
        output.read(out)
        errors.read(err)
    }

    deinit { process.withLock { if $0.isRunning { kill($0.processIdentifier, SIGKILL) } } }

    var text: String { output.text.withLock { $0 } }
    var errorText: String { errors.text.withLock { $0 } }

    /// The port that the program listens on.
    func port() async -> Int? {
        _ = await becomesTrue { text.contains("\n") || hasEnded }
        return text.split(separator: "\n").first?.split(separator: ":").last.flatMap { Int($0) }
    }

    var hasEnded: Bool { process.withLock { !$0.isRunning } }

    func send(_ signal: Int32) { process.withLock { _ = kill($0.processIdentifier, signal) } }

    /// Waits until the program ends, and returns its exit status; `nil` if a signal ended it, or if it does not end.
    func end() async -> Int32? {
        guard await becomesTrue({ hasEnded }) else { return nil }
        return process.withLock { $0.terminationReason == .exit ? $0.terminationStatus : nil }
    }

    /// Runs a program to its end and returns what it writes, and its exit status. Unlike a `Process` of Foundation, this
    /// also works if very many descriptors are open.
    static func run(_ arguments: [String]) async throws -> (output: String, status: Int32) {
        try await onThread {
            let file = try makeFolder() + "/output"
            var actions = posix_spawn_file_actions_t()
            posix_spawn_file_actions_init(&actions)
            defer { posix_spawn_file_actions_destroy(&actions) }
            posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
            posix_spawn_file_actions_addopen(&actions, 1, file, O_WRONLY | O_CREAT, 0o600)
            posix_spawn_file_actions_adddup2(&actions, 1, 2)
            for descriptor in Int32(3)..<512 { posix_spawn_file_actions_addclose(&actions, descriptor) }
            var words = (["env"] + arguments).map { strdup($0) } + [nil]
            var settings = ProcessInfo.processInfo.environment.map { strdup("\($0)=\($1)") } + [nil]
            defer { for word in words + settings { free(word) } }
            var (process, status): (pid_t, Int32) = (0, 0)
            let failure = posix_spawn(&process, "/usr/bin/env", &actions, nil, &words, &settings)
            guard failure == 0 else { throw POSIXError(.init(rawValue: failure) ?? .EIO) }
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
