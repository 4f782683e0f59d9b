import Figures
import Foundation
import Glibc
import PluginABI
import PluginHost
import Work

/// Measures the costs of isolated modules that repeating the same call does not show.
struct Isolated {
    let effort: Effort

    init(_ effort: Effort) { self.effort = effort }

    func rows() throws -> [Row] { try [idle(), callers(), crash()] + starts() }

    // MARK: Calls

    /// A call after a pause in which both processes have fallen asleep, compared with a byte that a process echoes.
    private func idle() throws -> Row {
        let host = try PluginHost.bench(["PlainModule"], isolated: true)
        let parameters: Parameters = ["n": 7]
        let echo = try Echo()
        defer { echo.end() }
        var (ours, floor) = ([Double](), [Double]())
        for _ in 0..<(effort.isCheck ? 3 : 500) {
            usleep(1_000)
            ours.append(try timed { keep(try host.perform("Plain", "one", parameters).int ?? 0) })
            usleep(1_000)
            floor.append(try timed { try echo.turn() })
        }
        var row = Row("isolated call after a pause, median", unit: "µs", of: ours.map { $0 / 1e3 })
        row.floors = [Row.Other("a socket pair's round trip", of: floor.map { $0 / 1e3 })]
        row.goal = Goal(timesFloor: 1.2)
        return row
    }

    /// Two threads that call one module, compared with one thread. With fewer than four processors, the row has no goal:
    /// four threads take part, and how they share the processors is up to the scheduler.
    private func callers() throws -> Row {
        let host = try PluginHost.bench(["PlainModule"], isolated: true)
        let parameters: Parameters = ["n": 7]
        let rate = Threads(effort).scaling { count in
            var sum = 0
            for _ in 0..<count { sum &+= (try? host.perform("Plain", "one", parameters).int) ?? 0 }
            keep(sum)
        }
        var row = Row(
            "two threads, one isolated module, against one thread", unit: "×",
            ours: (0..<2 * effort.repetitions).map { _ in rate() }.quantile(0.75))  // Disturbances only lower it.
        row.floors = [
            Row.Other("a turn of shared memory, in ns", try effort.measure([Comparison.turn])[0].figure.median)
        ]
        if ProcessInfo.processInfo.activeProcessorCount >= 4 { row.goal = Goal(atLeast: 0.9, floorAtMost: 150) }
        return row
    }

    /// The time from the crashing instruction to the error of the call. The next call waits for the restart.
    private func crash() throws -> Row {
        let host = try PluginHost.bench(["PlainModule"], isolated: true)
        let parameters: Parameters = ["n": 7]
        var times: [Double] = []
        for _ in 0..<(effort.isCheck ? 2 : 200) {
            times.append(
                timed {
                    do throws(PluginError) { _ = try host.perform("Plain", "crash") } catch {
                        precondition(error.code == .moduleCrashed, error.message)
                    }
                } / 1e6)
            keep(try host.perform("Plain", "one", parameters).int ?? 0)
        }
        var row = Row("crash to the error of the call, 99th percentile", unit: "ms", ours: times.quantile(0.99))
        row.goal = Goal(atMost: 10)
        return row
    }

    // MARK: Processes

    /// The time from the start of a process until it has described its module, the time of the whole restart, and the
    /// memory that only this process uses.
    private func starts() throws -> [Row] {
        // 3 and 10 ms where the program that does nothing takes 0.69 ms.
        try [("PlainModule", "C", 4.35), ("BenchModule", "Swift", 14.5)].flatMap { module, language, limit in
            let temporary = TemporaryFolder()
            let folder = temporary.folder("plugins")
            try FileManager.default.copyItem(
                atPath: Opened.module(module), toPath: "\(folder)/lib\(module).so")
            var (starts, restarts, floor, memory) = ([Double](), [Double](), [Double](), [Double]())
            let host = try PluginHost.bench(folder: folder, in: temporary, isolated: true)
            defer { host.shutdown() }
            guard let name = host.modules.first?.name else { throw Failure("\(module) is not there.") }
            for number in 0..<(effort.isCheck ? 2 : 150) {
                // Spread over five seconds, so that a disturbance does not affect all of them.
                if number > 0, number % 25 == 0 { usleep(1_000_000) }
                let known = host.profile.entries.count
                restarts.append(try timed { try host.restart(name) } / 1e6)
                let loading = host.profile.entries.dropFirst(known).filter { $0.phase == .loading }
                starts.append(loading.reduce(0) { $0 + $1.duration / .milliseconds(1) })
                floor.append(try timed { try Self.runNothing() } / 1e6)
                guard let process = host.modules.first?.process else { throw Failure("\(name) has no process.") }
                memory.append(try Self.privateKiB(process))
            }
            let floors = [Row.Other("posix_spawn of a program that does nothing", of: floor)]
            var start = Row("isolated module in \(language), start to described", unit: "ms", of: starts)
            start.floors = floors
            start.goal = Goal(timesFloor: limit)
            start.margin = 1.1  // A process starts only once.
            var restart = Row("isolated module in \(language), restart", unit: "ms", of: restarts)
            restart.floors = floors
            var own = Row("isolated module in \(language), private memory", unit: "KiB", of: memory)
            own.goal = Goal(atMost: 1_536)
            return [start, restart, own]
        }
    }

    /// Starts a program and waits for its end.
    private static func runNothing() throws {
        var process = pid_t()
        let program = strdup("/bin/true")
        defer { free(program) }
        var status: Int32 = 0
        guard posix_spawn(&process, "/bin/true", nil, nil, [program, nil], environ) == 0,
            waitpid(process, &status, 0) == process
        else { throw Failure("/bin/true cannot be started.") }
    }

    /// The memory that only this process uses: its own pages and those of its channels, which are the files that are
    /// only in memory. `Private_Dirty` also contains the whole copy of the module's file until the kernel has written it
    /// to the disk, and `Pss_Shmem` contains it on tmpfs.
    private static func privateKiB(_ process: Int32) throws -> Double {
        // `contentsOfFile` ends with the first part of a file whose size the kernel does not know.
        let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/\(process)/smaps"))
        let text = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
        var isChannel = false
        var sum = 0.0
        for line in text.split(separator: "\n") {
            let words = line.split(whereSeparator: \.isWhitespace)
            guard words[0].hasSuffix(":") else {
                isChannel = words.count > 5 && words[5].hasPrefix("/memfd:")
                continue
            }
            guard words[0] == (isChannel ? "Pss:" : "Anonymous:"), words.count > 1 else { continue }
            guard let number = Double(words[1]) else { throw Failure("The memory of process \(process) is not known.") }
            sum += number
        }
        return sum
    }

    private func timed(_ body: () throws -> Void) rethrows -> Double {
        let start = now()
        try body()
        return now() - start
    }
}

/// A process that sends back what it is sent.
private struct Echo {
    private let socket: Int32
    private let process = Process()

    init() throws {
        var sockets: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &sockets) == 0 else {
            throw Failure("There is no socket pair.")
        }
        socket = sockets[0]
        let other = FileHandle(fileDescriptor: sockets[1], closeOnDealloc: true)
        process.executableURL = URL(fileURLWithPath: "/bin/cat")
        (process.standardInput, process.standardOutput) = (other, other)
        try process.run()
    }

    func turn() throws {
        var byte: UInt8 = 7
        guard write(socket, &byte, 1) == 1, read(socket, &byte, 1) == 1 else { throw Failure("There is no echo.") }
    }

    /// `cat` ends at the end of its input.
    func end() {
        close(socket)
        process.waitUntilExit()
    }
}
