import CDispatch
import CPluginHost
import CPluginWire
import Dispatch
import Glibc
import PluginABI
import PluginFile
import Synchronization

/// The thread that starts the worker processes of all hosts of this process, and notices what they do besides calls:
/// ending, writing output, closing their sockets, and asking for a channel to be served. A worker ends when the thread
/// that has started it ends, so this thread lives as long as the process.
final class WorkerSupervisor: Sendable {
    static let shared = WorkerSupervisor()

    /// A worker process and its descriptors.
    private struct Watched {
        let process: WorkerProcess
        /// The descriptor of the process (a pidfd).
        let descriptor: Int32
        /// The host's end of the socket, which the outbox closes; -1 once the worker has closed its own.
        var socket: Int32
        /// The end of the pipe for its output, which the output closes; -1 once no writer is left.
        var output: Int32
        let id: pid_t
        /// The bytes received so far of an incomplete message from the worker.
        var received: [UInt8] = []
        var servedChannels: Set<UInt32> = []
        /// The time when the process is ended if it has closed its socket and still runs, in nanoseconds of
        /// CLOCK_MONOTONIC.
        var end = Int64.max
    }

    private let commands = Mutex<[@Sendable () -> Void]>([])
    private let isStarted = Mutex(false)
    /// An eventfd that wakes the thread; -1 until the thread has been started.
    private let waker = Atomic<Int32>(-1)
    // Used by the thread only.
    private nonisolated(unsafe) var watched: [Watched] = []

    private init() {}

    /// Makes the thread check again whether messages wait to be sent.
    func wake() { plugin_host_wake(waker.load(ordering: .acquiring)) }

    // MARK: Start

    /// Starts the process.
    ///
    /// - Parameters:
    ///   - memory: The shared memory.
    ///   - socket: The worker's end of the socket.
    ///   - ownSocket: The host's end.
    ///   - output: The worker's end of the pipe for its output.
    /// - Throws: `outOfResources`; `openFailed` if the program cannot be started.
    func start(
        _ process: WorkerProcess, memory: Int32, socket: Int32, ownSocket: Int32, output: Int32
    ) throws(PluginError) {
        try startThread()
        let answer = Answer()
        let command: @Sendable () -> Void = {
            do throws(PluginError) {
                let (id, descriptor) = try Self.spawn(process, memory: memory, socket: socket, output: output)
                process.hasStarted(id, descriptor: descriptor)
                self.watched.append(
                    Watched(
                        process: process, descriptor: descriptor, socket: ownSocket,
                        output: process.output.descriptor, id: id))
            } catch {
                answer.error.withLock { $0 = error }
            }
            answer.isThere.signal()
        }
        commands.withLock { $0.append(command) }
        wake()
        answer.isThere.wait()
        if let error = answer.error.withLock(\.self) { throw error }
    }

    private final class Answer: Sendable {
        let error = Mutex<PluginError?>(nil)
        let isThere = DispatchSemaphore(value: 0)
    }

    private func startThread() throws(PluginError) {
        try isStarted.withLock { (isStarted) throws(PluginError) in
            guard !isStarted else { return }
            if waker.load(ordering: .relaxed) < 0 { waker.store(plugin_host_wake_create(), ordering: .releasing) }
            let waker = waker.load(ordering: .relaxed)
            guard waker >= 0 else { throw .noWorkerResource("The descriptor of its supervisor cannot be created") }
            try DetachedThread.start("pluginhost.work") { self.run(waker) }
            isStarted = true
        }
    }

    private static func spawn(
        _ process: WorkerProcess, memory: Int32, socket: Int32, output: Int32
    ) throws(PluginError) -> (pid_t, Int32) {
        let word = process.isDebugged ? "debug" : process.settings.isolation.reportsAddresses ? "addresses" : nil
        let arguments = [process.file.path, "\(getpid())"] + [word].compactMap(\.self)
        let program = process.settings.program
        let id: pid_t
        do throws(WorkerProgram.Failure) {
            id = try WorkerProgram.start(
                program, arguments, output: output, [memory, socket], environment: process.settings.rule.variables)
        } catch {
            switch error {
            case .descriptors(let code):
                errno = code
                throw .noWorkerResource("Its descriptors cannot be created")
            case .program(let code):
                throw PluginError(
                    .openFailed,
                    "\(process.file.original) cannot be opened in a process of its own: the program \(program) cannot be "
                        + "started: \(describe(errno: code)). It is built with pluginhost; install it beside the host's "
                        + "program, or name it in the configuration.")
            }
        }
        let descriptor = plugin_host_process_open(id)
        guard descriptor >= 0 else {
            let error = PluginError.noWorkerResource("A descriptor for it cannot be created")
            kill(id, SIGKILL)
            waitpid(id, nil, 0)
            throw error
        }
        return (id, descriptor)
    }

    // MARK: The thread

    private func run(_ waker: Int32) -> Never {
        while true {
            let commands = commands.withLock { commands in
                defer { commands = [] }
                return commands
            }
            for command in commands { command() }
            var descriptors = [pollfd(fd: waker, events: Int16(POLLIN), revents: 0)]
            for worker in watched {
                let socketEvents = POLLIN | (worker.process.outbox.waits ? POLLOUT : 0)
                descriptors.append(pollfd(fd: worker.descriptor, events: Int16(POLLIN), revents: 0))
                descriptors.append(pollfd(fd: worker.socket, events: Int16(socketEvents), revents: 0))
                descriptors.append(pollfd(fd: worker.output, events: Int16(POLLIN), revents: 0))
            }
            let count = poll(&descriptors, nfds_t(descriptors.count), timeToWait)
            countThreads()
            guard count >= 0 else { continue }
            plugin_host_wake_clear(waker)
            for index in watched.indices.reversed() {
                look(at: index, descriptors[1 + 3 * index..<4 + 3 * index].map { Int32($0.revents) })
            }
            endThoseWithoutSocket()
        }
    }

    /// How many milliseconds the thread may wait; -1 for ever.
    private var timeToWait: Int32 {
        var end = watched.map(\.end).min() ?? .max
        if countsThreads { end = min(end, nextCount) }
        return end == .max ? -1 : Int32(clamping: max(0, end - monotonicNow()) / 1_000_000 + 1)
    }

    private func endThoseWithoutSocket() {
        for index in watched.indices where watched[index].end <= monotonicNow() {
            watched[index].end = .max
            watched[index].process.doom("Its process closed its connection to the host, and was ended.")
        }
    }

    // MARK: Threads of root

    private static let isRoot = geteuid() == 0
    /// The time when the threads are counted again, in nanoseconds of CLOCK_MONOTONIC.
    private nonisolated(unsafe) var nextCount: Int64 = 0

    /// Whether there are processes whose threads the kernel should limit, but does not, because they run as root.
    private var countsThreads: Bool { Self.isRoot && watched.contains { $0.process.rule.sandbox != .none } }

    /// Ends processes that have too many threads, once a second at most.
    private func countThreads() {
        guard countsThreads, monotonicNow() >= nextCount else { return }
        nextCount = monotonicNow() + 1_000_000_000
        let limit = Int(PLUGIN_WIRE_THREADS_MAX)
        for worker in watched where worker.process.rule.sandbox != .none {
            guard plugin_host_process_threads(worker.id) > limit else { continue }
            worker.process.doom("It had more than \(limit) threads, and its process was ended.")
        }
    }

    // MARK: What happens

    private func look(at index: Int, _ events: [Int32]) {
        if events[2] != 0, watched[index].process.output.read() == .end {
            watched[index].process.output.close()
            watched[index].output = -1  // `poll` passes over it.
        }
        if events[1] & POLLOUT != 0 { watched[index].process.flush() }
        if events[1] & ~POLLOUT != 0 { receive(index) }
        if events[0] != 0 { reap(index) }
    }

    /// Receives the numbers of channels that the worker wants to be served, and of rooms that it no longer uses.
    private func receive(_ index: Int) {
        var buffer = [UInt8](repeating: 0, count: 1024)
        let count = recv(watched[index].socket, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        if count < 0, errno == EAGAIN || errno == EINTR { return }
        let process = watched[index].process
        guard count > 0 else {
            // A process that is ending has closed its socket, too.
            watched[index].socket = -1
            watched[index].end = monotonicNow() + 100_000_000
            return
        }
        watched[index].received += buffer[..<count]
        while watched[index].received.count >= 4 {
            let bytes = watched[index].received.prefix(4)
            watched[index].received.removeFirst(4)
            let number = bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }
            if number & PLUGIN_WIRE_LEFT == 0 {
                serve(number, index)
            } else {
                process.leaveRoom(number & ~PLUGIN_WIRE_LEFT)
            }
        }
    }

    private func serve(_ channel: UInt32, _ index: Int) {
        let process = watched[index].process
        guard channel >= PLUGIN_WIRE_DOWN_CHANNELS, channel < PLUGIN_WIRE_CHANNELS,
            watched[index].servedChannels.insert(channel).inserted
        else { return process.doom("Its process sent an invalid message, and was ended.") }
        guard let link = process.link else { return }
        if DetachedThread.tryStart("pluginhost.asks", { process.serveRequests(link, channel) }) != 0 {
            process.doom("No thread can be started to serve its requests, and its process was ended.")
        }
    }

    private func reap(_ index: Int) {
        var status: Int32 = 0
        let reaped = waitpid(watched[index].id, &status, WNOHANG)
        // The program may have reaped the process, or ignore SIGCHLD; then it is not known how the process ended.
        guard reaped != 0, reaped > 0 || errno == ECHILD else {
            // A debugger has not noticed the end of the process yet. Without a pause, `poll` would return again and
            // again.
            if reaped == 0 { usleep(10_000) }
            return
        }
        let worker = watched.remove(at: index)
        // Reads what the process wrote before its end, up to a limit, since a process that it started may still write.
        for _ in 0..<64 where worker.process.output.read() == .bytes {}
        worker.process.output.end()
        worker.process.hasEnded(reaped > 0 ? status : nil)
        close(worker.descriptor)
        worker.process.output.close()
    }
}
