import CPluginHost
import CPluginWire
import Dispatch
import Glibc
import PluginABI
import PluginFile
import Synchronization

/// The process of its own in which an isolated module runs, and the stand-in for the module in this process: the host
/// calls functions of a description that passes everything on.
///
/// Nothing that the process sends is trusted. It ends with the host, and only threads that call the module wait for it.
final class WorkerProcess: ModuleProcess, Sendable {
    /// The settings that are determined before the process starts.
    struct Settings: Sendable {
        /// The settings for isolated modules, with the times of the rule.
        var isolation: Isolation
        /// The rule that states what the process may reach and use.
        let rule: IsolationRule
        /// How long `activate` may take.
        var hookTimeout: Duration
        /// The path of the program.
        let program: String
        let log: @Sendable (LogEntry) -> Void
        /// Called when the process of a module has ended by itself, or was ended because it hung, before the callers
        /// learn of it; must not block. The closure that it returns is called after they have learnt of it.
        let hasCrashed: @Sendable (Generation) -> (@Sendable () -> Void)?
        /// Called when the process has been started and waits for a debugger; it then has no deadlines. `nil` if it
        /// does not wait for one.
        var awaitsDebugger: (@Sendable (WorkerProcess) -> Void)?
    }

    let file: StagedFile
    let settings: Settings
    /// ``Isolation/callTimeout``, in nanoseconds.
    let callLimit: Int64
    let objects = WorkerObjects()
    let outbox: WorkerOutbox
    let output: WorkerOutput
    let state: Mutex<State>
    private let answer = DispatchSemaphore(value: 0)
    /// The number of channels with calls of serial modules or targets that have not returned in time. No other such
    /// call begins while they may still run.
    let lostSerialCalls = Atomic<Int>(0)
    let lateCalls = LateCalls()
    private let processID = Atomic<Int32>(0)
    private let isRestartAwaited = Atomic<Bool>(false)

    /// The thread for what follows the end of a process. It does not depend on threads that run code of modules.
    static let afterwards = SerialThread("host.crashes")

    struct State {
        /// `nil` after the end of the process.
        var link: WorkerLink?
        /// The descriptor of the process; -1 if there is none.
        var descriptor: Int32 = -1
        /// The reason why the host has ended the process.
        var doom: String?
        /// The reason why the process has ended.
        var ending: String?
        /// Whether the process ended while it was still needed.
        var hasCrashed = false
        /// Whether the host no longer needs the process.
        var isUnneeded = false
        /// The parts of the sandbox that are missing; `nil` until the process has reported them.
        var missingProtections: [String]?
        /// Whether the process's message about the file has come, and that message.
        var hasSpoken = false
        var first: First?
        var generation: Unmanaged<Generation>?
    }

    /// The process's message about the file.
    enum First: @unchecked Sendable {  // The description is never freed.
        case description(UnsafePointer<plugin_module>)
        case failure(PluginError)
    }

    private init(_ file: StagedFile, _ settings: Settings, _ link: WorkerLink, socket: Int32, output: Int32) {
        (self.file, self.settings) = (file, settings)
        callLimit = settings.isolation.callTimeout.nanoseconds
        outbox = WorkerOutbox(socket)
        state = Mutex(State(link: link))
        self.output = WorkerOutput(file.original, descriptor: output, settings.log)
    }

    var id: Int32 { processID.load(ordering: .relaxed) }
    var ending: String? { state.withLock { $0.ending } }
    /// Whether the worker runs this program, so that modules in it share the Swift runtime of the program.
    var sharesRuntime: Bool { settings.program == WorkerProgram.thisProgram }
    var isDebugged: Bool { settings.awaitsDebugger != nil }
    /// Whether the process's message about the file has not come yet.
    var hasNotOpened: Bool { state.withLock { !$0.hasSpoken } }
    var hasCrashed: Bool { state.withLock(\.hasCrashed) }
    var lastWords: [String] { hasCrashed ? output.lastWords.lines : [] }
    var hasLateCalls: Bool { lateCalls.areRunning }
    var awaitsRestart: Bool { isRestartAwaited.load(ordering: .acquiring) }
    /// The shared memory; `nil` after the end of the process.
    var link: WorkerLink? { state.withLock { $0.link } }
    var rule: IsolationRule { settings.rule }
    var traffic: UInt64? { link?.traffic }
    var holdsObjects: Bool { !objects.isEmpty }
    var missingProtections: [String] { state.withLock { $0.missingProtections } ?? [] }
    /// The generation whose code it runs; `nil` until it is activated.
    var generation: Generation? { state.withLock { $0.generation }?.takeUnretainedValue() }

    func setGeneration(_ generation: Generation) {
        state.withLock { $0.generation = .passUnretained(generation) }  // Never freed.
        output.setModule(generation.name)
    }

    // MARK: Start

    /// Starts a process that opens a file, and waits until it has described the module.
    ///
    /// - Throws: `openFailed`, `invalidFile` or `invalidDescription`; `deadlineExceeded`; `outOfResources`.
    static func start(
        _ file: StagedFile, _ settings: Settings, timeout: Duration
    ) throws(PluginError) -> (WorkerProcess, UnsafePointer<plugin_module>) {
        let memory = plugin_wire_create()
        guard memory >= 0 else { throw .noWorkerResource("Its shared memory cannot be created") }
        defer { close(memory) }
        let link = try WorkerLink(memory: memory)
        var sockets: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &sockets) == 0 else {
            throw .noWorkerResource("Its socket cannot be created")
        }
        defer { close(sockets[1]) }
        var pipe: [Int32] = [-1, -1]
        guard plugin_host_pipe(&pipe) == 0 else {
            close(sockets[0])
            throw .noWorkerResource("The pipe for its output cannot be created")
        }
        defer { close(pipe[1]) }
        _ = fcntl(pipe[0], F_SETFL, O_NONBLOCK)
        let process = WorkerProcess(file, settings, link, socket: sockets[0], output: pipe[0])
        do throws(PluginError) {
            try process.postLimits()
            try WorkerSupervisor.shared.start(
                process, memory: memory, socket: sockets[1], ownSocket: sockets[0], output: pipe[1])
        } catch {
            process.outbox.close()
            process.output.close()
            throw error
        }
        settings.awaitsDebugger?(process)
        return (process, try process.waitForDescription(timeout))
    }

    private func waitForDescription(_ timeout: Duration) throws(PluginError) -> UnsafePointer<plugin_module> {
        let limit = isDebugged ? DispatchTime.distantFuture : .now() + timeout.dispatchInterval
        guard answer.wait(timeout: limit) == .success else {
            end()
            throw PluginError(
                .deadlineExceeded,
                "\(file.original) could not be opened within \(timeout), which is the hookTimeout: a constructor or the "
                    + "entry function does not return. Its process was ended.")
        }
        switch state.withLock({ $0.first }) {
        case .description(let description): return description
        case .failure(let error):
            end()
            throw error
        case nil:
            throw PluginError(
                .openFailed,
                "\(file.original) crashed while it was opened in a process of its own. \(report ?? "")")
        }
    }

    /// Returns whether the process has reported what its sandbox lacks, and has not sent its message about the file
    /// yet: that message is never freed, so it is read once.
    func claimFirst() -> Bool {
        state.withLock { state in
            defer { state.hasSpoken = true }
            return !state.hasSpoken && state.missingProtections != nil
        }
    }

    /// Records the parts of the sandbox that are missing. Returns false if they were known.
    func setMissingProtections(_ parts: [String]) -> Bool {
        state.withLock { state in
            guard state.missingProtections == nil else { return false }
            state.missingProtections = parts
            return true
        }
    }

    /// Records what the process says about the file.
    func setFirst(_ first: First) {
        state.withLock { $0.first = first }
        answer.signal()
    }

    /// Records that the process runs. Called by the supervisor.
    func hasStarted(_ process: pid_t, descriptor: Int32) {
        processID.store(process, ordering: .relaxed)
        state.withLock { $0.descriptor = descriptor }
    }

    // MARK: End

    @discardableResult
    func setAwaitsRestart(_ isAwaited: Bool) -> Bool {
        isRestartAwaited.exchange(isAwaited, ordering: .acquiringAndReleasing)
    }

    func end() {
        state.withLock { state in
            state.isUnneeded = true
            if state.descriptor >= 0 { plugin_host_process_kill(state.descriptor) }
        }
    }

    /// Ends a process that hangs, or cannot be trusted to do what it should.
    ///
    /// - Parameter reason: A sentence.
    func doom(_ reason: String) {
        state.withLock { state in
            guard state.doom == nil, state.ending == nil else { return }
            state.doom = reason
            if state.descriptor >= 0 { plugin_host_process_kill(state.descriptor) }
        }
    }

    /// Handles the end of the process. Called by the supervisor, once; does not block.
    ///
    /// - Parameter status: The status of `waitpid`; `nil` if it is unknown.
    func hasEnded(_ status: Int32?) {
        let (generation, isUnneeded) = state.withLock { state in
            state.descriptor = -1
            state.ending = state.doom ?? Self.sentence(status)
            state.hasCrashed = !state.isUnneeded
            return (state.generation, state.isUnneeded)
        }
        outbox.close()
        lateCalls.endAll()
        let generationOfModule = generation?.takeUnretainedValue()
        let next = isUnneeded ? nil : generationOfModule.flatMap(settings.hasCrashed)
        // Calls that arrive before this still use the shared memory, and end there. Later ones find that there is none.
        let link = state.withLock { state in
            defer { state.link = nil }
            return state.link
        }
        if let link { plugin_wire_end(link.wire) }
        answer.signal()
        // On other threads, since the code of callers, of holders and of the log may block. These threads do not wait
        // for each other: a caller that tries again waits for the restart.
        Self.afterwards.async {
            if let generationOfModule { self.endCalls(of: generationOfModule) }
            next?()
        }
        ThreadPool.shared.run {
            self.objects.releaseAll()
            if let link { plugin_wire_close_rooms(link.wire) }
        }
    }

    private static func sentence(_ status: Int32?) -> String {
        guard let status else { return "Its process has ended." }
        let signal = status & 0x7F
        return signal != 0
            ? "Its process was ended by signal \(signal) (\(String(cString: strsignal(signal))))."
            : "Its process ended with the exit code \(status >> 8 & 0xFF)."
    }
}
