import Foundation
import PluginABI
import PluginHost

/// The built program `pluginhost`, in a process of its own.
struct HostProgram {
    /// What was built beside the tests.
    let program: String
    let folder: TemporaryFolder
    let plugins: String
    /// Whether it is told its plugins folder.
    var namesFolder = true

    struct Outcome {
        /// The signal that ended it, or 0.
        let signal: Int32
        let code: Int32
        let output: String
        let errors: String

        /// What `list --json` says of a file.
        func module(_ file: String) -> Value? {
            (try? Value(json: output))?.list?.first { $0["file"]?.string?.hasSuffix("/\(file)") == true }
        }
    }

    init(_ program: String = "pluginhost") throws {
        self.program = program
        folder = try TemporaryFolder()
        plugins = try folder.folder("plugins")
    }

    /// The same with another name of the plugins folder.
    func naming(_ plugins: String) -> HostProgram {
        HostProgram(program: program, folder: folder, plugins: plugins)
    }

    private init(program: String, folder: TemporaryFolder, plugins: String) {
        (self.program, self.folder, self.plugins) = (program, folder, plugins)
    }

    /// Runs it to its end, or to SIGKILL after two minutes.
    ///
    /// Not with Foundation's Process: that waits until nobody holds a descriptor any more which the program has handed
    /// on to whatever it has started, the backtracer of a crash included.
    func run(_ arguments: String..., environment: [String: String] = [:]) throws -> Outcome {
        try run(arguments, environment: environment)
    }

    func run(_ arguments: [String], environment: [String: String] = [:]) throws -> Outcome {
        try start(arguments, environment).wait()
    }

    /// Runs it until the test ends it.
    ///
    /// - Parameter pipes: What its output (1) or errors (2) go to, instead of a file.
    func start(
        _ arguments: String..., environment: [String: String] = [:], writingTo pipes: [Int32: String] = [:]
    ) throws -> Running {
        try start(arguments, environment, pipes)
    }

    private func start(
        _ arguments: [String], _ environment: [String: String], _ pipes: [Int32: String] = [:]
    ) throws -> Running {
        let name = UUID().uuidString
        let (output, errors) = (try folder.file("\(name).out"), try folder.file("\(name).err"))
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, pipes[1] ?? output, O_WRONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 2, pipes[2] ?? errors, O_WRONLY, 0)
        // Pipes of a compiler that another test starts meanwhile must not live as long as the program.
        for descriptor in Int32(3)..<512 { posix_spawn_file_actions_addclose(&actions, descriptor) }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        posix_spawnattr_setpgroup(&attributes, 0)
        // Whoever starts the tests may ignore signals.
        var signals = sigset_t()
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF))

        let program = try builtLibrary(program)
        // What it says of a crash is looked at, not what the Swift runtime adds.
        let variables = [
            "PATH": "/usr/bin:/bin", "HOME": folder.path, "TMPDIR": folder.path, "SWIFT_BACKTRACE": "enable=no",
        ].merging(sanitizerOptions) { $1 }
            .merging(environment) { $1 }
        var words = ([program] + arguments + (namesFolder ? ["--plugins", plugins] : [])).map { strdup($0) } + [nil]
        var settings = variables.map { strdup("\($0)=\($1)") } + [nil]
        defer { for word in words + settings { free(word) } }
        var process: pid_t = 0
        let failure = posix_spawn(&process, program, &actions, &attributes, &words, &settings)
        guard failure == 0 else { throw POSIXError(.init(rawValue: failure) ?? .EIO) }
        return Running(process: process, outputFile: output, errorFile: errors)
    }

    /// The program while it runs. Ends with the value that names it.
    final class Running {
        private let process: pid_t
        private let outputFile: String
        private let errorFile: String
        private var hasEnded = false

        fileprivate init(process: pid_t, outputFile: String, errorFile: String) {
            (self.process, self.outputFile, self.errorFile) = (process, outputFile, errorFile)
        }

        deinit {
            guard !hasEnded else { return }
            kill(-process, SIGKILL)
            var status: Int32 = 0
            waitpid(process, &status, 0)
        }

        /// What it has written so far.
        var output: String { (try? String(contentsOfFile: outputFile, encoding: .utf8)) ?? "" }
        var errors: String { (try? String(contentsOfFile: errorFile, encoding: .utf8)) ?? "" }

        func signal(_ number: Int32) { kill(process, number) }

        /// Lets it open no descriptor of that number or a higher one.
        func limitDescriptors(to count: Int) throws { try limit("--nofile=\(count)") }

        /// Lets it map so many more bytes than it has mapped.
        func limitMemory(toFurther bytes: Int) throws {
            let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
            let size = status.split(separator: "\n").first { $0.hasPrefix("VmSize:") }?.split(separator: " ")
            guard let size, size.count > 1, let kibibytes = Int(size[1]) else { throw POSIXError(.EIO) }
            try limit("--as=\(kibibytes * 1024 + bytes)")
        }

        private func limit(_ option: String) throws {
            let tool = Process()
            tool.executableURL = URL(fileURLWithPath: "/usr/bin/prlimit")
            tool.arguments = ["--pid", "\(process)", option]
            try tool.run()
            tool.waitUntilExit()
            guard tool.terminationStatus == 0 else { throw POSIXError(.EPERM) }
        }

        /// Waits for its end, and ends it with SIGKILL after two minutes.
        func wait() throws -> Outcome {
            var status: Int32 = 0
            for _ in 0..<12000 where !hasEnded {
                hasEnded = waitpid(process, &status, WNOHANG) == process
                if !hasEnded { usleep(10_000) }
            }
            kill(-process, SIGKILL)
            if !hasEnded { waitpid(process, &status, 0) }
            hasEnded = true
            let signal = status & 0x7F
            return Outcome(
                signal: signal, code: signal == 0 ? status >> 8 & 0xFF : 0,
                output: try String(contentsOfFile: outputFile, encoding: .utf8),
                errors: try String(contentsOfFile: errorFile, encoding: .utf8))
        }
    }
}

/// Whether the tests, and so the program, are built with a sanitizer.
let isSanitized = dlsym(nil, "__tsan_init") != nil || dlsym(nil, "__asan_init") != nil

/// What the sanitizers were told, for programs that are started; there they leave fatal signals to the program.
private var sanitizerOptions: [String: String] {
    let signals = ["segv", "sigbus", "abort", "sigill", "sigfpe", "sigtrap"].map { "handle_\($0)=0" }
    return ["ASAN_OPTIONS", "TSAN_OPTIONS"].reduce(into: [:]) { options, name in
        let told = ProcessInfo.processInfo.environment[name].map { [$0] } ?? []
        options[name] = (told + signals + ["use_sigaltstack=0"]).joined(separator: ":")
    }
}
