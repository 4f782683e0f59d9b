import Foundation
import PluginABI
import Testing

@testable import TestSupport

/// A host is killed at random moments while its folder changes, and started again.
///
/// Three times, or as often as `PLUGINHOST_STRESS_KILLS` says.
@Suite(.timeLimit(.minutes(30)), .serialized) struct KillTests {
    private static let places = 4

    @Test func `A host that is killed again and again serves what is in the folder, and leaves nothing behind`()
        throws
    {
        let kills = ProcessInfo.processInfo.environment["PLUGINHOST_STRESS_KILLS"].flatMap { Int($0) } ?? 3
        let seed = UInt64.random(in: 1...1_000_000)
        print("Kills: seed \(seed)")
        var random = SplitMix(seed: seed)
        let program = try HostProgram()
        // This host has its own plugins folder, and shares the staging folder with the hosts that are killed.
        let quiet = program.naming(try program.folder.folder("quiet"))
        try CModule().build(into: quiet.plugins, as: "good.so")
        let living = try quiet.start("run")
        #expect(eventually { staging(program).count == 1 })
        let ownFolder = try #require(staging(program).first)

        var numbers = [Int](repeating: StressModule.numbers.lowerBound, count: Self.places)
        func change(_ place: Int) throws {
            numbers[place] += 1
            try StressModule(place: place, number: numbers[place]).put(into: program.plugins, as: "\(place).so")
        }
        for _ in 0..<kills {
            // Each content is new: one whose host was killed twice would no longer be only under suspicion.
            for place in 0..<Self.places { try change(place) }
            let running = try program.start("run")
            let end = ContinuousClock.now + .milliseconds(Int(random.next() % 800))
            while ContinuousClock.now < end {
                try change(Int(random.next() % UInt64(Self.places)))
                usleep(UInt32(random.next() % 3000))
            }
            running.signal(SIGKILL)
            #expect(try running.wait().signal == SIGKILL)
        }

        // This host keeps running, so it also tries the file that was being started when the last one was killed.
        let last = try program.start("run")
        var list = try program.run("list", "--json")
        let isComplete = try eventually {
            list = try program.run("list", "--json")
            return numbers.enumerated().allSatisfy { place, number in
                let module = list.module("\(place).so")
                guard access("\(program.plugins)/\(place).so", F_OK) == 0 else { return module == nil }
                return module?["state"] == "active" && module?["version"]?.string == "1.\(number).0"
            }
        }
        #expect(isComplete, "\(list.output) \(last.output) \(last.errors)")
        #expect(eventually { staging(program).count == 2 && !last.output.isEmpty })
        last.signal(SIGTERM)
        let outcome = try last.wait()
        #expect(outcome.signal == 0 && outcome.code == 0, "\(outcome.errors)")
        #expect(staging(program) == [ownFolder])
        #expect(!(try FileManager.default.contentsOfDirectory(atPath: ownFolder)).isEmpty)
        living.signal(SIGTERM)
        #expect(try living.wait().code == 0)
        #expect(staging(program).isEmpty)
    }

    /// The staging folders of hosts, whether these run or not.
    private func staging(_ program: HostProgram) -> [String] {
        let base = "\(program.folder.path)/pluginhost-\(geteuid())"
        let names = (try? FileManager.default.contentsOfDirectory(atPath: base)) ?? []
        return names.filter { $0.hasPrefix("host-") }.sorted().map { "\(base)/\($0)" }
    }

    @Test func `A file that ends the host without a signal is tried once more by a host that runs, and then never`()
        throws
    {
        let program = try HostProgram()
        // The module makes the system call itself, which the host does not notice; _exit() would identify the module.
        try CModule(code: "#include <sys/syscall.h>", entry: "syscall(SYS_exit_group, 7);")
            .build(into: program.plugins, as: "leaving.so")
        try CModule().build(into: program.plugins, as: "good.so")
        #expect(try program.start("run").wait().code == 7)
        // All other modules serve before this host ends.
        let second = try program.start("run").wait()
        #expect(second.code == 7)
        let third = try program.start("run")
        #expect(eventually { third.output.contains("leaving.so") || third.errors.contains("leaving.so") })
        third.signal(SIGTERM)
        #expect(try third.wait().code == 0)
        #expect(try program.run("list", "--json").module("leaving.so")?["state"] == "quarantined")
        #expect(try program.run("list", "--json").module("good.so")?["state"] == "active")
    }

    @Test func `A file whose description is read while another one ends the host is not under suspicion`() throws {
        let program = try HostProgram()
        // Reading ten thousand routes takes tens of milliseconds.
        let routes = (0..<10_000).map { #"{"pattern": "app://wide/\#($0)", "action": "Wide/answer"}"# }
        try CModule(name: "Wide", moreManifest: #""routes": [\#(routes.joined(separator: ", "))],"#)
            .build(into: program.plugins, as: "a.so")
        try CModule(
            name: "Leaving", code: "#include <sys/syscall.h>\n#include <unistd.h>",
            entry: "usleep(5000); syscall(SYS_exit_group, 7);"
        )
        .build(into: program.plugins, as: "b.so")
        #expect(try program.start("run").wait().code == 7)
        let list = try program.run("list", "--json")
        #expect(list.module("a.so")?["state"] == "active", "\(list.output)")
        #expect(list.module("b.so")?["state"] == "quarantined", "\(list.output)")
    }

    @Test func `A module that kills the host by a fatal signal is not tried again`() throws {
        let program = try HostProgram()
        try CModule(setUp: "__builtin_trap();").build(into: program.plugins, as: "dying.so")
        #expect(try program.start("run").wait().signal == SIGILL)
        let second = try program.start("run")
        #expect(eventually { second.output.contains("dying.so") || second.errors.contains("dying.so") })
        second.signal(SIGTERM)
        #expect(try second.wait().code == 0)
    }
}
