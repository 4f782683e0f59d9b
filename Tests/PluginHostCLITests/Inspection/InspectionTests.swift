import Glibc
import PluginABI
import PluginHost
import Testing

@testable import PluginHostCLI
@testable import TestSupport

@Suite(.timeLimit(.minutes(30))) struct InspectionTests {
    /// Inspects with a shell script in place of the child; its report descriptor is 3.
    private func inspect(_ script: String, deadline: Duration = .seconds(10)) async throws -> Value {
        var inspection = Inspection(file: "/dev/null", trustsEveryone: false, deadline: deadline, endsSoon: false)
        inspection.executable = "/bin/sh"
        inspection.arguments = ["sh", "-c", script]
        return try await onThread { [inspection] in try inspection.run() }
    }

    private func error(_ script: String, deadline: Duration = .seconds(10)) async -> PluginError? {
        await #expect(throws: PluginError.self) { try await inspect(script, deadline: deadline) }
    }

    @Test func `the child's report is the result`() async throws {
        #expect(try await inspect(#"echo printed; echo '{"report":{"a":1}}' >&3"#) == ["a": 1])
    }

    @Test func `a long report arrives complete`() async throws {
        let script = #"printf '{"report":"' >&3; head -c 3000000 /dev/zero | tr '\0' x >&3; echo '"}' >&3"#
        #expect(try await inspect(script).string?.utf8.count == 3_000_000)
    }

    @Test func `the child's refusal is the error`() async {
        let script = #"echo '{"error":{"code":"invalidFile","message":"It is empty."}}' >&3"#
        #expect(await error(script) == PluginError(.invalidFile, "It is empty."))
    }

    @Test func `a child that dies of a signal is an error that names the signal`() async {
        let error = await error("kill -SEGV $$")
        #expect(error?.code == .inspectionCrashed)
        #expect(error?.message.contains("SIGSEGV") == true)
        #expect(error.map(ExitCode.init) == .badData)
    }

    @Test(arguments: ["exit 3", #"printf '{"report":' >&3"#, "echo nonsense >&3"])
    func `a child that ends without a report is an error`(script: String) async {
        #expect(await error(script)?.code == .inspectionCrashed)
    }

    @Test func `a child that hangs is killed with all processes that it started`() async throws {
        let folder = try TemporaryFolder()
        let start = ContinuousClock.now
        let error = await error("sleep 3600 & echo $! > \(folder.path)/pid; sleep 3600", deadline: .seconds(10))
        #expect(error?.code == .inspectionTimedOut)
        #expect(ContinuousClock.now - start < .seconds(1800))
        let text = String(decoding: readFile(folder.path + "/pid"), as: UTF8.self)
        let process = try #require(pid_t(text.dropLast()))
        for _ in 0..<30_000 {
            guard isRunning(process) else { break }
            usleep(10_000)
        }
        #expect(!isRunning(process))
    }

    @Test func `processes that a child leaves behind are killed, and do not delay the answer`() async throws {
        let start = ContinuousClock.now
        #expect(try await inspect(#"sleep 3600 & echo '{"report":1}' >&3"#) == 1)
        #expect(ContinuousClock.now - start < .seconds(1800))
    }

    @Test(
        .disabled(if: isSanitized, "The modules need functions of the sanitizer, which the worker does not export."),
        arguments: ["ModuleA", "ModuleC", "FixtureModule"])
    func `a scan process describes a module as this program does`(module: String) throws {
        let file = built("lib\(module).so")
        let report = try PluginHost.inspectByScan(file: file, trustsEveryone: true, timeout: .seconds(600))
        #expect(try report?.json == PluginHost.inspect(file: file, trustsEveryone: true).derivingTypes().json)
    }

    @Test(.disabled(if: isSanitized, "With a sanitizer, files are not scanned."))
    func `types that crash, or are no manifest, are left out, with a warning`() throws {
        for (body, problem) in [
            ("abort();", "types are not known"), ("", "types are not usable"),
            (
                #"if (!without.count) { begin(context, (plugin_string)PLUGIN_STRING_INIT("Trap")); abort(); } "#
                    + "types.manifest = module.manifest; types.notes = without;", "Warning: Trap\n"
            ),
        ] {
            let code = """
                static plugin_module module;
                static plugin_types derive(
                    void *data, plugin_string without, void (*begin)(void *, plugin_string), void *context) {
                    plugin_types types = {PLUGIN_STRING_INIT("{}"), {NULL, 0}};
                    if (!begin) abort();
                    \(body)
                    return types;
                }
                static const plugin_type_derivation derivation = {sizeof derivation, 0, derive};
                static const void *extension(void *data, plugin_string name) { return &derivation; }
                """
            let file = try CModule(code: code, entry: "module.get_extension = extension;").build()
            let outcome = try ProgramProcess.run("facade", "--trust", file)
            #expect(outcome.code == 0 && outcome.output.contains("enum GoodFacade {"))
            #expect(outcome.errors.contains(problem), "\(outcome.errors)")
        }
    }

    @Test func `a file that does not pass in a scan process is run by this program, which names the signal`() throws {
        let file = try CModule(entry: "abort();").build()
        #expect(try PluginHost.inspectByScan(file: file, trustsEveryone: true, timeout: .seconds(600)) == nil)
        let outcome = try ProgramProcess.run("inspect", "--trust", file)
        #expect(ExitCode(rawValue: outcome.code) == .badData)
        #expect(outcome.errors.contains("SIGABRT"))
    }

    @Test func `a file that does not exist has its own exit code`() {
        let inspection = Inspection(file: "/nonexistent.so", trustsEveryone: false, deadline: nil, endsSoon: true)
        let error = #expect(throws: PluginError.self) { try inspection.run() }
        #expect(error.map(ExitCode.init) == .noInput)
    }

    /// A zombie that nobody reaps counts as gone.
    private func isRunning(_ process: pid_t) -> Bool {
        let status = String(decoding: readFile("/proc/\(process)/stat"), as: UTF8.self)
        return !status.isEmpty && !status.contains(") Z ")
    }

    private func readFile(_ path: String) -> [UInt8] {
        let descriptor = open(path, O_RDONLY)
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        return Array(bytes[..<max(0, read(descriptor, &bytes, 4096))])
    }
}
