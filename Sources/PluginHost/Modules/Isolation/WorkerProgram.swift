import CDispatch
import CPluginHost
import Glibc
import Synchronization

/// The start of the program `pluginhost-worker`, or of this program in its place.
enum WorkerProgram {
    /// The path of this program, even if its file has been replaced.
    static let thisProgram = "/proc/self/exe"
    /// Whether this program can be started in the place of `pluginhost-worker`, because it has called ``runIfAsked()``.
    static let isInThisProgram = Atomic(false)

    /// Does what `pluginhost-worker` does, and does not return, if this process was started in its place.
    static func runIfAsked() {
        let isPossible = plugin_host_run_worker_if_asked(CommandLine.argc, CommandLine.unsafeArgv) != 0
        isInThisProgram.store(isPossible, ordering: .relaxed)
    }

    /// The reason why the program cannot be started, with the error number.
    enum Failure: Error {
        case descriptors(Int32)
        case program(Int32)
    }

    /// Starts the program. Its standard input is empty.
    ///
    /// - Parameters:
    ///   - arguments: The arguments after the name.
    ///   - output: What becomes its standard output and standard error.
    ///   - descriptors: What becomes its descriptors from 3 on.
    ///   - environment: The variables, as `NAME=value`; `nil` for those of this process.
    ///   - group: Whether it leads a process group, which signals of a terminal do not reach, and whose processes can
    ///     be ended together.
    static func start(
        _ program: String, _ arguments: [String], output: Int32, _ descriptors: [Int32], environment: [String]? = nil,
        group: Bool = false
    ) throws(Failure) -> pid_t {
        // The descriptors get numbers above those that they have in the program, so that none replaces another.
        let first = STDERR_FILENO + 1
        let copies = ([output] + descriptors).map { fcntl($0, F_DUPFD_CLOEXEC, first + Int32(descriptors.count)) }
        defer { for copy in copies where copy >= 0 { close(copy) } }
        guard copies.allSatisfy({ $0 >= 0 }) else { throw .descriptors(errno) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, copies[0], STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, copies[0], STDERR_FILENO)
        for (index, copy) in copies.dropFirst().enumerated() {
            posix_spawn_file_actions_adddup2(&actions, copy, first + Int32(index))
        }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // The host may ignore or block signals.
        var signals = sigset_t()
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        posix_spawnattr_setpgroup(&attributes, 0)
        let flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | (group ? POSIX_SPAWN_SETPGROUP : 0)
        posix_spawnattr_setflags(&attributes, Int16(flags))
        var words = ([PLUGIN_HOST_WORKER_NAME] + arguments).map { strdup($0) } + [nil]
        var variables = (environment ?? []).map { strdup($0) } + [nil]
        defer { for text in words + variables { free(text) } }
        var id: pid_t = 0
        let code =
            environment == nil
            ? posix_spawn(&id, program, &actions, &attributes, &words, environ)
            : posix_spawn(&id, program, &actions, &attributes, &words, &variables)
        guard code == 0 else { throw .program(code) }
        return id
    }
}
