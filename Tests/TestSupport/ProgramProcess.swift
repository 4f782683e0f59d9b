import Foundation
import PluginABI
import PluginHost

/// The built program `pluginhost`, or another one beside the tests, in a process that ends when this object is
/// deinitialized.
///
/// The output of the process goes to files, so that the process never waits for a reader.
final class ProgramProcess {
    struct Outcome {
        /// The signal that ended the process, or 0.
        let signal: Int32
        /// The exit code; 0 if a signal ended it.
        let code: Int32
        /// The output that was not read as lines.
        let output: String
        let errors: String

        var json: Value? { try? Value(json: output) }

        /// What `list --json` states about a file.
        func module(_ file: String) -> Value? {
            json?.list?.first { $0["file"]?.string?.hasSuffix("/\(file)") == true }
        }
    }

    private let folder: TemporaryFolder
    private let process: pid_t
    private var outputLines: Lines
    private var errorLines: Lines
    private var hasEnded = false
    private var status: Int32 = 0

    /// - Parameters:
    ///   - program: The name of a program beside the tests, or an absolute path.
    ///   - environment: Variables in addition to the indispensable ones. By default, the home folder is a temporary
    ///     folder.
    ///   - folder: The working directory.
    ///   - input: The standard input of the process.
    ///   - pipes: Where the output (1) or the errors (2) go, instead of a file.
    ///   - inSession: Whether the process has its own session, without a terminal, as services have.
    init(
        _ arguments: [String], program: String = "pluginhost", environment: [String: String] = [:],
        folder: String? = nil, input: String = "", writingTo pipes: [Int32: String] = [:], inSession: Bool = false
    ) throws {
        let own = try TemporaryFolder()
        let (output, errors) = (try own.file("output"), try own.file("errors"))
        // Tests examine the program's own crash report, not what the Swift runtime adds to it.
        let variables = [
            "PATH": "/usr/bin:/bin", "HOME": own.path, "TMPDIR": own.path, "SWIFT_BACKTRACE": "enable=no",
        ].merging(Self.sanitizerOptions) { $1 }.merging(environment) { $1 }
        let path = program.hasPrefix("/") ? program : built(program)
        let (program, words) =
            folder.map { ("/usr/bin/env", ["-C", $0, path] + arguments) } ?? (path, arguments)
        process = try spawn(
            program, words, environment: variables, input: own.file("input", input),
            output: pipes[1] ?? output, errors: pipes[2] ?? errors, inSession: inSession)
        (self.folder, outputLines, errorLines) = (own, Lines(file: output), Lines(file: errors))
    }

    /// The options of the sanitizers for programs that tests start; these let the programs handle fatal signals.
    static var sanitizerOptions: [String: String] {
        let signals = ["segv", "sigbus", "abort", "sigill", "sigfpe", "sigtrap"].map { "handle_\($0)=0" }
        return ["ASAN_OPTIONS", "TSAN_OPTIONS"].reduce(into: [:]) { options, name in
            let told = ProcessInfo.processInfo.environment[name].map { [$0] } ?? []
            options[name] = (told + signals + ["use_sigaltstack=0"]).joined(separator: ":")
        }
    }

    deinit { if !hasEnded { end() } }

    /// Runs the program until it ends, or kills it after two minutes.
    static func run(
        _ arguments: String..., environment: [String: String] = [:], folder: String? = nil
    ) throws -> Outcome {
        try ProgramProcess(arguments, environment: environment, folder: folder).wait()
    }

    // MARK: - Output

    /// All output so far that was not read as lines.
    var output: String { outputLines.rest }
    var errors: String { errorLines.rest }

    /// Reads lines of the output until one is accepted; nil if the output ends first.
    func line(where isWanted: (String) -> Bool) -> String? {
        outputLines.next(where: isWanted) { self.isOver }
    }

    /// Like `line(where:)`, for standard error.
    func errorLine(where isWanted: (String) -> Bool) -> String? {
        errorLines.next(where: isWanted) { self.isOver }
    }

    /// A growing file that is read line by line.
    private struct Lines {
        let file: String
        private var read = 0

        init(file: String) { self.file = file }

        private var bytes: Data {
            guard let handle = FileHandle(forReadingAtPath: file) else { return Data() }
            try? handle.seek(toOffset: UInt64(read))
            return (try? handle.readToEnd()) ?? Data()
        }

        var rest: String { String(decoding: bytes, as: UTF8.self) }

        mutating func next(where isWanted: (String) -> Bool, until isOver: () -> Bool) -> String? {
            while true {
                let hasEnded = isOver()
                var bytes = bytes
                while let end = bytes.firstIndex(of: UInt8(ascii: "\n")) {
                    let line = String(decoding: bytes[..<end], as: UTF8.self)
                    read += bytes.distance(from: bytes.startIndex, to: end) + 1
                    if isWanted(line) { return line }
                    bytes = bytes[(end + 1)...]
                }
                if hasEnded { return nil }
                usleep(2000)
            }
        }
    }

    // MARK: - Control

    /// Its process id.
    var id: pid_t { process }

    func signal(_ number: Int32) { kill(process, number) }

    /// Whether the process is stopped, for example by SIGSTOP.
    var isStopped: Bool {
        let text = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ""
        return text.split(separator: ")").last?.hasPrefix(" T") == true
    }

    /// Prevents the process from opening descriptors with this number or a higher one.
    func limitDescriptors(to count: Int) throws { try limit("--nofile=\(count)") }

    /// Limits the size of the files that the process writes.
    func limitFileSize(to bytes: Int) throws { try limit("--fsize=\(bytes)") }

    /// Limits the address space of the process to this many bytes more than it has mapped.
    func limitMemory(toFurther bytes: Int) throws {
        let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
        let size = status.split(separator: "\n").first { $0.hasPrefix("VmSize:") }?.split(separator: " ")
        guard let size, size.count > 1, let kibibytes = Int(size[1]) else { throw POSIXError(.EIO) }
        try limit("--as=\(kibibytes * 1024 + bytes)")
    }

    private func limit(_ option: String) throws {
        guard let tool = Tool("prlimit") else { throw POSIXError(.ENOENT) }
        try tool.run(["--pid", "\(process)", option])
    }

    /// Waits until the process ends, and kills it after two minutes.
    func wait() throws -> Outcome {
        for _ in 0..<24_000 {
            if isOver { break }
            usleep(5000)
        }
        end()
        let signal = status & 0x7F
        return Outcome(
            signal: signal, code: signal == 0 ? status >> 8 & 0xFF : 0, output: outputLines.rest,
            errors: errorLines.rest)
    }

    private var isOver: Bool {
        if !hasEnded { hasEnded = waitpid(process, &status, WNOHANG) == process }
        return hasEnded
    }

    /// Kills what is left of the process group.
    private func end() {
        kill(-process, SIGKILL)
        if !hasEnded { hasEnded = waitpid(process, &status, 0) == process }
    }
}
