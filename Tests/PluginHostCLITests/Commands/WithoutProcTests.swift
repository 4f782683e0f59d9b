import Foundation
import Testing

@testable import TestSupport

/// Without `/proc`, as in some containers. Only a user that may create a mount namespace can test this.
@Suite(.timeLimit(.minutes(30))) struct WithoutProcTests {
    private static func run(_ command: String) -> (isSuccess: Bool, output: String)? {
        let arguments = ["-m", "sh", "-c", "umount -l /proc && exec \(command)"]
        do { return try Tool("unshare").map { (true, try $0.run(arguments)) } } catch {
            return (error as? Tool.Failed).map { (false, $0.output) }
        }
    }

    /// Sanitizers read `/proc` themselves.
    private static let isPossible = !isSanitized && run("true")?.isSuccess == true

    private let program = built("pluginhost")
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test(.enabled(if: isPossible))
    func `The program understands its arguments without procfs, and says that it is missing`() throws {
        let state = "env XDG_STATE_HOME=\(folder.path)"
        #expect(Self.run("\(program) --version").map { $0.output.count < 20 } == true)
        let list = try #require(Self.run("\(state) \(program) list --json --plugins \(folder.path)"))
        #expect(list.isSuccess && list.output.contains("[]"), "\(list.output)")
        let unknown = try #require(Self.run("\(program) lst"))
        #expect(!unknown.isSuccess && unknown.output.contains("Did you mean “list”?"), "\(unknown.output)")
        let module = built("libModuleA.so")
        let inspection = try #require(Self.run("\(program) inspect --trust \(module)"))
        #expect(!inspection.isSuccess && inspection.output.contains("/proc is not mounted"), "\(inspection.output)")
        // No process is needed for a file with a seal.
        let sealed = try #require(Self.run("\(program) inspect --trust \(built("libModuleC.so"))"))
        #expect(sealed.isSuccess && sealed.output.contains("TARGET C"), "\(sealed.output)")
    }
}
