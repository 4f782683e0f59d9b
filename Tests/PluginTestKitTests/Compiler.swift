import Foundation

/// A compiler of the machine, for what the guide tells authors to build.
struct Compiler {
    struct Failed: Error, CustomStringConvertible {
        let command: String
        let output: String
        var description: String { "\(command)\n\(output)" }
    }

    private let path: String

    /// Nil where the machine has none of that name.
    init?(_ name: String) {
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin").split(separator: ":")
        let candidates: [String] = folders.map { "\($0)/\(name)" }
        guard let path = candidates.first(where: { access($0, X_OK) == 0 }) else { return nil }
        self.path = path
    }

    /// Runs it to its end, on a thread of its own: other tests have the threads of tasks meanwhile.
    ///
    /// - Throws: ``Failed`` with all that it has said.
    func run(_ arguments: [String]) async throws {
        try await withUnsafeThrowingContinuation { (continuation: UnsafeContinuation<Void, any Error>) in
            Thread.detachNewThread { continuation.resume(with: Result { try start(arguments) }) }
        }
    }

    private func start(_ arguments: [String]) throws {
        let output = "\(NSTemporaryDirectory())/plugin-compiler-\(UUID().uuidString)"
        defer { unlink(output) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)
        // A descriptor that another test has open for writing must not live on in a compiler.
        for descriptor in Int32(3)..<512 { posix_spawn_file_actions_addclose(&actions, descriptor) }
        var words = ([path] + arguments).map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var process: pid_t = 0
        let failure = posix_spawn(&process, path, &actions, nil, &words, environ)
        guard failure == 0 else { throw POSIXError(.init(rawValue: failure) ?? .EIO) }
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        guard status == 0 else {
            throw Failed(
                command: ([path] + arguments).joined(separator: " "),
                output: (try? String(contentsOfFile: output, encoding: .utf8)) ?? "")
        }
    }

    /// What a Swift file that imports the modules of this package needs.
    static var swiftModules: [String] {
        ["-swift-version", "6", "-I", "\(built)/Modules"]
            + ["CPluginABI", "CPluginHost"].flatMap {
                ["-Xcc", "-fmodule-map-file=\(built)/\($0).build/module.modulemap"]
            }
    }

    /// The folder of the header.
    static var header: String { "\(repository)/Sources/CPluginABI/include" }
}
