import Foundation

/// Starts a program in its own process group. The program has the descriptors 0 to 2, and no others of this process.
///
/// Does not use Foundation's Process: the program would inherit descriptors that other tests have open meanwhile, and
/// Process waits for every process that holds a descriptor of the program, including the backtracer of a crash.
///
/// - Parameters:
///   - environment: All variables; nil for those of this process.
///   - inSession: Whether the program has its own session, without a terminal.
func spawn(
    _ program: String, _ arguments: [String], environment: [String: String]? = nil, input: String, output: String,
    errors: String, inSession: Bool = false
) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, input, O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_APPEND, 0)
    posix_spawn_file_actions_addopen(&actions, 2, errors, O_WRONLY | O_APPEND, 0)
    for descriptor in Int32(3)..<512 { posix_spawn_file_actions_addclose(&actions, descriptor) }
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    posix_spawnattr_setpgroup(&attributes, 0)
    // The process that starts the tests may ignore signals, which its children inherit.
    var signals = sigset_t()
    sigfillset(&signals)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    let newSession: Int32 = 0x80  // POSIX_SPAWN_SETSID, which Glibc's headers hide from Swift
    posix_spawnattr_setflags(
        &attributes, Int16((inSession ? newSession : POSIX_SPAWN_SETPGROUP) | POSIX_SPAWN_SETSIGDEF))
    let variables = environment ?? ProcessInfo.processInfo.environment
    var words = ([program] + arguments).map { strdup($0) } + [nil]
    var settings = variables.map { strdup("\($0)=\($1)") } + [nil]
    defer { for word in words + settings { free(word) } }
    var process: pid_t = 0
    let failure = posix_spawn(&process, program, &actions, &attributes, &words, &settings)
    guard failure == 0 else { throw POSIXError(.init(rawValue: failure) ?? .EIO) }
    return process
}

/// Whether the tests, and with them the programs beside them, are built with a sanitizer.
let isSanitized = sanitizer != nil

/// The sanitizer with which the tests are built, by the name that compilers use.
let sanitizer = ["thread": "__tsan_init", "address": "__asan_init"].first { dlsym(nil, $0.value) != nil }?.key
