import Foundation
import PluginABI
import PluginHost
import Testing

@testable import TestSupport

/// Isolated modules of the program `pluginhost`.
@Suite struct IsolationTests {
    private static let module = CModule(
        name: "Bad",
        actions: [
            ("crash", "fprintf(stderr, \"out of paper\\n\"); abort();"),
            ("process", "reply_int(call->token, getpid());"),
            ("quiet", "close(1); close(2); reply(call, \"\");"),
        ])

    private func start(_ program: HostProgram) throws -> (ProgramProcess, String) {
        try Self.module.build(into: program.plugins, as: "bad.so")
        let socket = "\(program.folder.path)/s"
        let process = try program.start("run", "--isolate", "all", "--socket", socket)
        #expect(process.line { $0.contains("Listening") } != nil)
        return (process, socket)
    }

    private func worker(_ program: HostProgram, _ socket: String) throws -> pid_t {
        let output = try program.run("call", "Bad", "process", "--attach", socket).output
        return try #require(pid_t(output.trimmingCharacters(in: .whitespacesAndNewlines)))
    }

    @Test func `A crash is reported, and the list shows the process and the restarts`() throws {
        var program = try HostProgram()
        program.namesFolder = true
        let (process, socket) = try start(program)
        var attached = program
        attached.namesFolder = false
        let outcome = try attached.run("call", "Bad", "crash", "--attach", socket)
        #expect(outcome.code != 0)
        #expect(outcome.errors.contains("moduleCrashed"))
        #expect(process.line { $0.contains("crashed Bad") && $0.contains("signal 6") } != nil)
        #expect(process.line { $0.contains("restarted Bad") } != nil)
        let list = try attached.run("list", "--attach", socket).output
        #expect(list.contains("restarted 1 time"))
        let all = try attached.run("list", "--all", "--attach", socket).output
        #expect(all.contains("last words:\n    out of paper\n"), "\(all)")
        let before = try worker(attached, socket)
        let restart = try attached.run("restart", "Bad", "--attach", socket)
        #expect(restart.output.hasPrefix("restarted Bad in process "))
        #expect(try worker(attached, socket) != before)
        #expect(try attached.run("restart", "Nobody", "--attach", socket).errors.contains("unknownModule"))
        process.signal(SIGTERM)
        #expect(try process.wait().code == 0)
        #expect(eventually { kill(before, 0) != 0 })
    }

    @Test func `The list and the statistics have what the processes use`() throws {
        let program = try HostProgram()
        let (process, socket) = try start(program)
        var attached = program
        attached.namesFolder = false
        let worker = Int(try worker(attached, socket))
        let module = try attached.run("list", "--attach", socket, "--json").json?.list?.first
        #expect(module?["process"]?.int == worker)
        #expect(try #require(module?["residentBytes"]?.int) > 0)
        #expect(module?["processorTime"]?.double != nil)
        for options in [[], ["--all"]] {
            let list = try attached.run(["list", "--attach", socket] + options).output
            #expect(list.contains("process \(worker), ") && list.contains("of processor time"))
        }
        let statistics = try attached.run("stats", "--attach", socket, "--processes", "--json").json
        #expect(statistics?["actions"]?.list?.isEmpty == false)
        #expect(statistics?["processes"]?[0]?["process"]?.int == worker)
        #expect(statistics?["processes"]?[0]?["restarts"] == 0)
        #expect(try attached.run("stats", "--attach", socket, "--processes").output.contains("\nPROCESS "))
        process.signal(SIGTERM)
        _ = try process.wait()
    }

    @Test func `The log names the process that waits for a debugger`() throws {
        let program = try HostProgram()
        try Self.module.build(into: program.plugins, as: "bad.so")
        let process = try program.start("run", "--debug-worker", "Bad")
        #expect(eventually { process.errors.contains("Bad: process ") && process.errors.contains("gdb -p ") })
        process.signal(SIGKILL)
        _ = try process.wait()
    }

    @Test func `No descriptor and no zombie is left after crashes`() throws {
        let program = try HostProgram()
        let (process, socket) = try start(program)
        var attached = program
        attached.namesFolder = false
        func descriptors() -> Int {
            (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process.id)/fd").count) ?? 0
        }
        func children() -> Int {
            let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process.id)/task")) ?? []
            return tasks.reduce(0) { sum, task in
                let path = "/proc/\(process.id)/task/\(task)/children"
                let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
                return sum + text.split(separator: " ").count
            }
        }
        _ = try worker(attached, socket)
        let before = descriptors()
        for _ in 0..<3 {
            _ = try attached.run("call", "Bad", "crash", "--attach", socket)
            _ = try attached.run("restart", "Bad", "--attach", socket)
        }
        #expect(eventually { children() == 1 })
        #expect(eventually { descriptors() <= before })
        process.signal(SIGTERM)
        _ = try process.wait()
    }

    @Test func `A module that closes its output costs the host no time`() throws {
        let program = try HostProgram()
        let (process, socket) = try start(program)
        var attached = program
        attached.namesFolder = false
        /// The processor time that the host has used, in hundredths of a second.
        func time() throws -> Int {
            let status = try String(contentsOfFile: "/proc/\(process.id)/stat", encoding: .utf8)
            let members = try #require(status.split(separator: ")").last).split(separator: " ")
            let inProgram = try #require(Int(members[11]))
            let inKernel = try #require(Int(members[12]))
            return inProgram + inKernel
        }
        #expect(try attached.run("call", "Bad", "quiet", "--attach", socket).code == 0)
        let worker = try worker(attached, socket)
        let before = try time()
        usleep(500_000)
        #expect(try time() - before < 25)
        #expect(try self.worker(attached, socket) == worker)
        process.signal(SIGTERM)
        _ = try process.wait()
    }

    @Test func `A rule in the configuration isolates its module, and a mistake in it is named`() throws {
        let program = try HostProgram()
        try Self.module.build(into: program.plugins, as: "bad.so")
        let file = try program.folder.file(
            "configuration.json", Data("{\"isolation\": [{\"module\": \"Bad\", \"memory\": \"1G\"}]}".utf8))
        #expect(try program.run("list", "--json", "--config", file).output.contains("\"process\""))
        let wrong = try program.folder.file(
            "wrong.json", Data("{\"isolation\": [{\"module\": \"Bad\", \"memry\": \"1G\"}]}".utf8))
        let outcome = try program.run("list", "--config", wrong)
        #expect(outcome.code == 78)
        #expect(outcome.errors.contains("“memry” is not a known key. Did you mean"), "\(outcome.errors)")
    }

    @Test func `A host that is killed leaves no worker`() throws {
        let program = try HostProgram()
        let (process, socket) = try start(program)
        var attached = program
        attached.namesFolder = false
        let worker = try worker(attached, socket)
        #expect(kill(worker, 0) == 0)
        process.signal(SIGKILL)
        _ = try process.wait()
        #expect(eventually { kill(worker, 0) != 0 })
    }

    @Test(.disabled(if: isSanitized, "The samples need functions of the sanitizer, which the worker does not export."))
    func `The samples answer isolated as they do in the process`() throws {
        let program = try HostProgram()
        for name in ["ModuleA", "ModuleB", "ModuleC"] {
            try copyFile(built("lib\(name).so"), to: "\(program.plugins)/lib\(name).so")
        }
        let calls = [
            ["call", "A", "fetchDetail", "key=42"], ["call", "A", "price", "key=42"],
            ["call", "C", "add", "a=1", "b=2"],
            ["call", "B", "nothing"], ["open", "app://A/fetchDetail?key=7"],
        ]
        for call in calls {
            let here = try program.run(call)
            let elsewhere = try program.run(call + ["--isolate", "all"])
            #expect(here.output == elsewhere.output)
            #expect(here.errors == elsewhere.errors)
            #expect(here.code == elsewhere.code)
        }
    }
}
