internal import Foundation
internal import Testing

/// Where `/proc` is not mounted, as in some containers. Only who may make a mount namespace can try it.
@Suite(.timeLimit(.minutes(30))) struct WithoutProcTests {
    private static func run(_ command: String) -> (code: Int32, output: String)? {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["unshare", "-m", "sh", "-c", "umount -l /proc && exec \(command)"]
        process.standardOutput = output
        process.standardError = output
        guard (try? process.run()) != nil else { return nil }
        let text = (try? output.fileHandleForReading.readToEnd()) ?? Data()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: text, as: UTF8.self))
    }

    /// Sanitizers read `/proc` themselves.
    private static let isSanitized = dlsym(nil, "__tsan_init") != nil || dlsym(nil, "__asan_init") != nil
    private static let isPossible = !isSanitized && run("true")?.code == 0
    private let program = ProgramProcess.folder.path() + "pluginhost"
    private let folder = TemporaryFolder()

    @Test(.enabled(if: isPossible)) func `The program knows what it was asked, and says what it misses`() throws {
        let state = "env XDG_STATE_HOME=\(folder.path)"
        #expect(Self.run("\(program) --version").map { $0.output.count < 20 } == true)
        let list = try #require(Self.run("\(state) \(program) list --json --plugins \(folder.path)"))
        #expect(list.code == 0 && list.output.contains("[]"), "\(list.output)")
        let unknown = try #require(Self.run("\(program) lst"))
        #expect(unknown.code == 64 && unknown.output.contains("Did you mean “list”?"), "\(unknown.output)")
        let module = ProgramProcess.folder.path() + "libModuleC.so"
        let inspection = try #require(Self.run("\(program) inspect --trust \(module)"))
        #expect(inspection.code != 0 && inspection.output.contains("/proc is not mounted"), "\(inspection.output)")
    }
}
