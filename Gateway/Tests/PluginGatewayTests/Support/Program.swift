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

    /// Runs a program to its end and returns what it writes, and its exit status.
    static func run(_ arguments: [String]) async throws -> (output: String, status: Int32) {
        try await onThread {
            let process = Process()
            process.executableURL = URL(filePath: "/usr/bin/env")
            process.arguments = arguments
            let file = try makeFolder() + "/output"
            _ = FileManager.default.createFile(atPath: file, contents: nil)
            let handle = try FileHandle(forWritingTo: URL(filePath: file))
            (process.standardOutput, process.standardError) = (handle, handle)
            process.standardInput = FileHandle.nullDevice
            try process.run()
            process.waitUntilExit()
            return (try String(contentsOfFile: file, encoding: .utf8), process.terminationStatus)
        }
    }
}

/// Runs a body that blocks on a separate thread.
func onThread<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Result, any Error>) in
        Thread.detachNewThread { continuation.resume(with: Swift.Result { try body() }) }
    }
}
