import Foundation
import Synchronization

/// A program that a test has started, with its output in a file.
final class Child: Sendable {
    private let process: Mutex<Process>
    let log: String

    /// - Parameters:
    ///   - arguments: The program, found by `PATH`, and its arguments.
    ///   - log: The file to which its output is added.
    init(_ arguments: [String], log: String, environment: [String: String] = [:]) throws {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        if !FileManager.default.fileExists(atPath: log) {
            _ = FileManager.default.createFile(atPath: log, contents: nil)
        }
        let handle = try FileHandle(forWritingTo: URL(filePath: log))
        try handle.seekToEnd()
        (process.standardOutput, process.standardError) = (handle, handle)
        process.standardInput = FileHandle.nullDevice
        self.log = log
        self.process = Mutex(process)
        try self.process.withLock { try $0.run() }
    }

    deinit { end() }

    var text: String { (try? String(contentsOfFile: log, encoding: .utf8)) ?? "" }
    var id: Int32 { process.withLock { $0.processIdentifier } }
    var hasEnded: Bool { process.withLock { !$0.isRunning } }

    func send(_ signal: Int32) { process.withLock { if $0.isRunning { kill($0.processIdentifier, signal) } } }

    func end() { send(SIGKILL) }

    /// Waits until it ends, and returns its exit status; `nil` if a signal ended it.
    func status() async -> Int32? {
        guard await becomesTrue({ hasEnded }) else { return nil }
        return process.withLock { $0.terminationReason == .exit ? $0.terminationStatus : nil }
    }
}

/// Runs a program to its end.
///
/// - Throws: Its output, if its exit status is not 0.
@discardableResult
func run(_ arguments: String...) throws -> String {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = arguments
    let pipe = Pipe()
    (process.standardOutput, process.standardError) = (pipe, pipe)
    process.standardInput = FileHandle.nullDevice
    try process.run()
    let data = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    let text = String(decoding: data, as: UTF8.self)
    guard process.terminationStatus == 0 else { throw Failed(text: "\(arguments.joined(separator: " ")): \(text)") }
    return text
}

struct Failed: Error, CustomStringConvertible {
    let text: String
    var description: String { text }
}
