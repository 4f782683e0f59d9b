internal import Dispatch
internal import Foundation
internal import Glibc
internal import PluginABI
internal import PluginHost
internal import Synchronization

/// The built program, started as a process of its own.
final class ProgramProcess: Sendable {
    /// Beside the test executable.
    static let folder = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()

    struct Outcome: Sendable {
        let code: Int32
        let output: String
        let errors: String

        var json: Value? { try? Value(json: output) }
    }

    private let process = Process()
    private let output = Pipe()
    private let errors = Pipe()

    /// - Parameter input: What it reads from standard input; not more than a pipe takes.
    init(
        _ arguments: [String], environment: [String: String] = [:], folder: String? = nil, input: String? = nil
    ) throws {
        process.executableURL = Self.folder.appending(path: "pluginhost")
        process.arguments = arguments
        // What a sanitizer was told holds for its children too.
        let sanitizers = ProcessInfo.processInfo.environment.filter { $0.key.hasSuffix("SAN_OPTIONS") }
        process.environment = ["PATH": "/usr/bin:/bin", "HOME": NSHomeDirectory()].merging(sanitizers) { $1 }
            .merging(environment) { $1 }
        if let folder { process.currentDirectoryURL = URL(filePath: folder) }
        process.standardInput = FileHandle.nullDevice
        if let input {
            let pipe = Pipe()
            try pipe.fileHandleForWriting.write(contentsOf: Data(input.utf8))
            try pipe.fileHandleForWriting.close()
            process.standardInput = pipe
        }
        process.standardOutput = output
        process.standardError = errors
        try process.run()
    }

    /// Runs it to its end.
    static func run(
        _ arguments: String..., environment: [String: String] = [:], folder: String? = nil
    ) throws -> Outcome {
        try ProgramProcess(arguments, environment: environment, folder: folder).finish()
    }

    func signal(_ number: Int32) { kill(process.processIdentifier, number) }

    /// The next line of its output; nil at the end.
    func nextLine() -> String? { Self.nextLine(of: output) }

    private static func nextLine(of pipe: Pipe) -> String? {
        var line = Data()
        while let byte = try? pipe.fileHandleForReading.read(upToCount: 1), let first = byte.first {
            if first == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
            line.append(first)
        }
        return nil
    }

    /// Reads lines until one is accepted; nil where the output ends before.
    func line(where isWanted: (String) -> Bool) -> String? {
        while let line = nextLine() { if isWanted(line) { return line } }
        return nil
    }

    /// The same of what it writes to standard error. What was read so is not in the outcome.
    func errorLine(where isWanted: (String) -> Bool) -> String? {
        while let line = Self.nextLine(of: errors) { if isWanted(line) { return line } }
        return nil
    }

    /// Whether it is stopped, as by SIGSTOP.
    var isStopped: Bool {
        let text = (try? String(contentsOfFile: "/proc/\(process.processIdentifier)/stat", encoding: .utf8)) ?? ""
        return text.split(separator: ")").last?.hasPrefix(" T") == true
    }

    func finish() throws -> Outcome {
        // Both at once: a program that fills the pipe that nobody reads would wait for ever.
        let errorText = Mutex(Data())
        let hasErrors = DispatchSemaphore(value: 0)
        Thread.detachNewThread { [errors] in
            let text = (try? errors.fileHandleForReading.readToEnd()) ?? Data()
            errorText.withLock { $0 = text }
            hasErrors.signal()
        }
        let output = try self.output.fileHandleForReading.readToEnd() ?? Data()
        hasErrors.wait()
        let errors = errorText.withLock { $0 }
        process.waitUntilExit()
        let code = process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
        return Outcome(
            code: code, output: String(decoding: output, as: UTF8.self), errors: String(decoding: errors, as: UTF8.self)
        )
    }
}

/// Copies a file as `writeFile` writes it, to where there is none.
func copyFile(_ source: String, to destination: String) throws {
    try writeFile(Data(contentsOf: URL(fileURLWithPath: source)), to: destination, mode: 0o755, O_EXCL)
}
