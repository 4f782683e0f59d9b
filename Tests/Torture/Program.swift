import Foundation

/// The program under attack.
struct Program {
    let path: String

    struct Outcome {
        /// The signal that ended the program, or 0.
        let signal: Int32
        let code: Int32
        /// Whether the program was still running when its time was over, and was killed.
        let isLate: Bool
        let output: String
        let errors: String

        /// How the program ended, for a message.
        var description: String {
            if isLate { return "did not end in time" }
            return signal == 0 ? "ended with exit code \(code)" : "died of signal \(signal)"
        }
    }

    /// Runs the program until it ends.
    func run(_ arguments: [String], in folder: Folder, seconds: Double = 60) throws -> Outcome {
        try start(arguments, in: folder).wait(seconds: seconds)
    }

    /// Starts the program in its own process group, with the folder as its home and working directory.
    func start(_ arguments: [String], in folder: Folder) throws -> Running {
        let name = UUID().uuidString
        let (output, errors) = ("\(folder.path)/\(name).out", "\(folder.path)/\(name).err")
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT, 0o600)
        posix_spawn_file_actions_addopen(&actions, 2, errors, O_WRONLY | O_CREAT, 0o600)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP))
        var words = ([path] + arguments).map { strdup($0) } + [nil]
        let variables = [
            "PATH=/usr/bin:/bin", "HOME=\(folder.path)", "TMPDIR=\(folder.path)", "SWIFT_BACKTRACE=enable=no",
        ]
        var settings = variables.map { strdup($0) } + [nil]
        defer { for word in words + settings { free(word) } }
        var process: pid_t = 0
        let failure = posix_spawn(&process, path, &actions, &attributes, &words, &settings)
        guard failure == 0 else { throw POSIXError(.init(rawValue: failure) ?? .EIO) }
        return Running(process: process, output: output, errors: errors)
    }

    /// A running program, which ends when this object is deinitialized.
    final class Running {
        let process: pid_t
        private let outputFile: String
        private let errorFile: String
        private var status: Int32?

        fileprivate init(process: pid_t, output: String, errors: String) {
            (self.process, outputFile, errorFile) = (process, output, errors)
        }

        deinit { if status == nil { end() } }

        var isRunning: Bool {
            guard status == nil else { return false }
            var found: Int32 = 0
            guard waitpid(process, &found, WNOHANG) == process else { return true }
            status = found
            return false
        }

        func signal(_ number: Int32) { if isRunning { kill(process, number) } }

        private func end() {
            kill(-process, SIGKILL)
            var found: Int32 = 0
            waitpid(process, &found, 0)
            status = found
        }

        /// Waits until the program ends, and kills it when its time is over.
        func wait(seconds: Double) -> Outcome {
            let hasEnded = eventually(within: seconds) { !isRunning }
            if hasEnded { kill(-process, SIGKILL) } else { end() }
            let status = status ?? 0
            return Outcome(
                signal: status & 0x7F, code: status & 0x7F == 0 ? status >> 8 & 0xFF : 0, isLate: !hasEnded,
                output: text(outputFile), errors: text(errorFile))
        }

        var output: String { text(outputFile) }
        var errors: String { text(errorFile) }

        /// Resident memory in MiB.
        var memory: Int { Resources(of: process).memory / 1024 }
    }
}

/// What `list --json` says: by file name, the state, followed by the error code if there is one.
func states(_ json: String) -> [String: String] {
    let list = try? JSONSerialization.jsonObject(with: Data(json.utf8)) as? [[String: Any]]
    return (list ?? []).reduce(into: [:]) { states, entry in
        guard let file = entry["file"] as? String, let state = entry["state"] as? String else { return }
        let code = (entry["error"] as? [String: Any])?["code"] as? String
        states[(file as NSString).lastPathComponent] = state + (code.map { ": \($0)" } ?? "")
    }
}
