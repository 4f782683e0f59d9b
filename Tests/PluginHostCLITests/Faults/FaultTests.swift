import Foundation
import PluginABI
import Testing

@testable import PluginHost
@testable import TestSupport

/// System calls that fail while a host runs. The host reports each with the file and the cause, continues to run, and
/// loads what it could not load once the fault is over.
@Suite(.timeLimit(.minutes(30)), .serialized) struct FaultTests {
    let program: HostProgram
    let faults: Faults

    init() throws {
        program = try HostProgram()
        faults = try Faults()
        try CModule(name: "First").build(into: program.plugins, as: "first.so")
    }

    private func add(_ name: String) throws {
        try CModule(name: name).build(into: program.plugins, as: "\(name.lowercased()).so")
    }

    private func list() throws -> ProgramProcess.Outcome {
        try program.run("list", "--json", environment: faults.environment)
    }

    /// The error of a file in the list.
    private func error(_ file: String, in outcome: ProgramProcess.Outcome) -> String {
        outcome.module(file)?["error"]?["message"]?.string ?? ""
    }

    /// A watching host whose first module is active.
    private func start() throws -> ProgramProcess {
        let running = try program.start("run", "--json", environment: faults.environment)
        #expect(eventually { running.output.contains("\"watching\"") }, "\(running.errors)")
        return running
    }

    /// Whether the host has reported that a module was added.
    private func isAdded(_ name: String, _ running: ProgramProcess) -> Bool {
        running.output.split(separator: "\n").contains { line in
            let change = try? Value(json: String(line))
            return change?["event"] == "added" && change?["module"]?["name"] == .string(name)
        }
    }

    private func stop(_ running: ProgramProcess) throws {
        running.signal(SIGTERM)
        let outcome = try running.wait()
        #expect(outcome.signal == 0 && outcome.code == 0, "\(outcome.errors)")
    }

    /// Touches a file, as users do to have it examined again.
    private func touch(_ file: String) { utimensat(AT_FDCWD, "\(program.plugins)/\(file)", nil, 0) }

    private func staging(_ name: String = "") -> String { "\(program.folder.path)/pluginhost-\(geteuid())/\(name)" }

    /// Adds one module while the fault lasts and one more when it is over.
    private func expectRecovery(
        from fault: Faults.Fault, at place: String, telling words: [String]
    ) throws {
        try add("Second")
        try faults.begin(fault, place)
        let outcome = try list()
        #expect(outcome.signal == 0, "\(outcome.errors)")
        for word in words + ["second.so"] {
            #expect(error("second.so", in: outcome).contains(word), "\(outcome.output)")
        }
        unlink("\(program.plugins)/second.so")
        faults.end(fault)

        let running = try start()
        try faults.begin(fault, place)
        try add("Second")
        #expect(eventually { words.allSatisfy(running.output.contains) }, "\(running.output)")
        try add("Third")
        if fault != .full { #expect(eventually { isAdded("Third", running) }, "\(running.output)") }
        #expect(!isAdded("Second", running))
        faults.end(fault)
        touch("second.so")
        touch("third.so")
        #expect(eventually { isAdded("Second", running) && isAdded("Third", running) }, "\(running.output)")
        try stop(running)
    }

    @Test func `Faults occur only while they are requested`() throws {
        let outcome = try list()
        #expect(outcome.module("first.so")?["state"] == "active", "\(outcome.output) \(outcome.errors)")
    }

    @Test func `A full disk while a module is staged fails that module, until there is room`() throws {
        try expectRecovery(from: .full, at: staging(), telling: ["No space left on device", "Make room"])
        let left = (try? FileManager.default.contentsOfDirectory(atPath: staging())) ?? []
        #expect(left.filter { $0.hasPrefix("host-") }.isEmpty)
    }

    @Test func `A module that the linker cannot map fails, and the others are served`() throws {
        try expectRecovery(
            from: .maps, at: "second.so", telling: ["cannot be opened", "failed to map segment from shared object"])
    }

    @Test func `A file that cannot be read to its end fails, and the others are served`() throws {
        try expectRecovery(from: .read, at: "/second.so", telling: ["cannot be read completely: Input/output error"])
    }

    @Test func `A file that changes while it is copied is not served until it stops changing`() throws {
        let running = try start()
        try faults.begin(.change, "/second.so")
        try add("Second")
        let file = "\(program.plugins)/second.so"
        let size = try size(of: file)
        #expect(eventually { (try? self.size(of: file)) ?? 0 > size + 1 }, "\(running.output)")  // It was copied twice.
        try add("Third")
        #expect(eventually { isAdded("Third", running) }, "\(running.output)")
        #expect(!isAdded("Second", running))
        faults.end(.change)
        touch("second.so")
        #expect(eventually { isAdded("Second", running) }, "\(running.output)")
        try stop(running)
    }

    private func size(of path: String) throws -> Int {
        try #require(FileManager.default.attributesOfItem(atPath: path)[.size] as? Int)
    }

    @Test func `A version that could not be kept on a full disk is kept once there is room`() throws {
        let running = try start()
        let file = "\(program.plugins)/first.so"
        let versions = "\(program.folder.path)/.local/state/pluginhost/versions"
        let served = try Data(contentsOf: URL(filePath: file))
        try faults.begin(.full, versions)
        unlink(file)
        let problem = "First 1.0.0 cannot be kept: No space left"
        #expect(eventually { running.output.contains(problem) }, "\(running.output)")
        // The module is torn down, but its copy still exists.
        #expect(eventually { running.output.contains("\"retired\"") }, "\(running.output)")
        faults.end(.full)
        let kept = eventually {
            let names = FileManager.default.enumerator(atPath: versions)?.compactMap { $0 as? String } ?? []
            return names.contains { $0.hasSuffix("/version.json") && !$0.contains("/.") }
        }
        #expect(kept, "\(running.output) \(running.errors)")
        try stop(running)
        #expect(try program.run("rollback", "First").code == 0)
        #expect(try Data(contentsOf: URL(filePath: file)) == served)
    }

    @Test(arguments: [Faults.Fault.instances, .watches])
    func `If the kernel has no more watches, the host says so and checks once a second`(fault: Faults.Fault) throws {
        try faults.begin(fault)
        let running = try start()
        // Its errors can arrive after its output.
        #expect(eventually { running.errors.components(separatedBy: "checked once a second").count == 2 })
        #expect(running.errors.contains("Raise fs.inotify.max_user_watches or max_user_instances."))
        try add("Second")
        #expect(eventually { isAdded("Second", running) }, "\(running.output)")
        unlink("\(program.plugins)/second.so")
        #expect(eventually { running.output.contains("\"removed\"") }, "\(running.output)")
        try stop(running)
    }

    @Test func `A host that can watch again after the limit is raised loads new modules`() throws {
        try faults.begin(.watches)
        let running = try start()
        faults.end(.watches)
        try add("Second")
        #expect(eventually { isAdded("Second", running) }, "\(running.output)")
        try stop(running)
    }
}
