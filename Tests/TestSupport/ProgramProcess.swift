import Foundation
import PluginABI
import PluginHost

/// The built program `pluginhost`, or another one beside the tests, in a process of its own, which ends with the value
/// that names it.
///
/// What it writes goes to files, so that it never waits for a reader.
final class ProgramProcess {
    struct Outcome {
        /// The signal that ended it, or 0.
        let signal: Int32
        /// The exit code; 0 where a signal ended it.
        let code: Int32
        /// What nobody has read as lines before.
        let output: String
        let errors: String

        var json: Value? { try? Value(json: output) }

        /// What `list --json` says of a file.
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
    ///   - environment: Variables besides those without which nothing works. Its home is a folder of its own unless told
    ///     otherwise.
    ///   - folder: The working directory.
    ///   - input: What it reads from standard input.
    ///   - pipes: What its output (1) or errors (2) go to, instead of a file.
    init(
        _ arguments: [String], program: String = "pluginhost", environment: [String: String] = [:],
        folder: String? = nil, input: String = "", writingTo pipes: [Int32: String] = [:]
    ) throws {
        let own = try TemporaryFolder()
        let (output, errors) = (try own.file("output"), try own.file("errors"))
        // What it says of a crash is looked at, not what the Swift runtime adds.
        let variables = [
            "PATH": "/usr/bin:/bin", "HOME": own.path, "TMPDIR": own.path, "SWIFT_BACKTRACE": "enable=no",
        ].merging(Self.sanitizerOptions) { $1 }.merging(environment) { $1 }
        let (program, words) =
            folder.map { ("/usr/bin/env", ["-C", $0, built(program)] + arguments) } ?? (built(program), arguments)
        process = try spawn(
            program, words, environment: variables, input: own.file("input", input),
            output: pipes[1] ?? output, errors: pipes[2] ?? errors)
        (self.folder, outputLines, errorLines) = (own, Lines(file: output), Lines(file: errors))
    }

    /// What the sanitizers were told, for programs that are started; there they leave fatal signals to the program.
    private static var sanitizerOptions: [String: String] {
        let signals = ["segv", "sigbus", "abort", "sigill", "sigfpe", "sigtrap"].map { "handle_\($0)=0" }
        return ["ASAN_OPTIONS", "TSAN_OPTIONS"].reduce(into: [:]) { options, name in
            let told = ProcessInfo.processInfo.environment[name].map { [$0] } ?? []
            options[name] = (told + signals + ["use_sigaltstack=0"]).joined(separator: ":")
        }
    }

    deinit { if !hasEnded { end() } }

    /// Runs it to its end, or to SIGKILL after two minutes.
    static func run(
        _ arguments: String..., environment: [String: String] = [:], folder: String? = nil
    ) throws -> Outcome {
        try ProgramProcess(arguments, environment: environment, folder: folder).wait()
    }

    // MARK: - What it says

    /// All that it has written so far and that nobody has read as lines.
    var output: String { outputLines.rest }
    var errors: String { errorLines.rest }

    /// Reads lines of its output until one is accepted; nil where the output ends before.
    func line(where isWanted: (String) -> Bool) -> String? {
        outputLines.next(where: isWanted) { self.isOver }
    }

    /// As `line(where:)`, of what it writes to standard error.
    func errorLine(where isWanted: (String) -> Bool) -> String? {
        errorLines.next(where: isWanted) { self.isOver }
    }

    /// A file that grows, read line by line.
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

    // MARK: - What is done to it

    func signal(_ number: Int32) { kill(process, number) }

    /// Whether it is stopped, as by SIGSTOP.
    var isStopped: Bool {
        let text = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ""
        return text.split(separator: ")").last?.hasPrefix(" T") == true
    }

    /// Lets it open no descriptor of that number or a higher one.
    func limitDescriptors(to count: Int) throws { try limit("--nofile=\(count)") }

    /// Lets no file that it writes grow beyond so many bytes.
    func limitFileSize(to bytes: Int) throws { try limit("--fsize=\(bytes)") }

    /// Lets it map so many more bytes than it has mapped.
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

    /// Waits for its end, and ends it with SIGKILL after two minutes.
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

    /// Ends what is left of its process group.
    private func end() {
        kill(-process, SIGKILL)
        if !hasEnded { hasEnded = waitpid(process, &status, 0) == process }
    }
}
