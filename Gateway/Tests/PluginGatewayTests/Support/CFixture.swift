import Foundation

/// Builds modules in C while the tests run, in the way that `CModule`, shared with the tests of the host, expects.
enum CFixture {
    private static let repository = URL(filePath: #filePath).appending(path: "../../../../..").standardized.path

    /// Compiles C to a library in a separate folder, and returns its path.
    static func build(_ source: String, _ flags: [String] = []) throws -> String {
        let folder = try makeFolder()
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments =
            ["clang", "-std=c11", "-shared", "-fPIC", "-I", "\(repository)/Sources/CPluginABI/include"] + flags
            + ["-x", "c", "\(folder)/source.c", "-o", "\(folder)/library.so"]
        try source.write(toFile: "\(folder)/source.c", atomically: false, encoding: .utf8)
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw POSIXError(.ENOEXEC) }
        return "\(folder)/library.so"
    }
}

/// The folder in which SwiftPM has built the tests, the sample modules and the program.
let buildFolder = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent().path

/// Makes a folder, inside the temporary folder of the run, that only this user can write to.
func makeFolder() throws -> String {
    let path = FileManager.default.temporaryDirectory.path + "/gateway-test-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    chmod(path, 0o755)
    return path
}

func copyFile(_ source: String, to destination: String) throws {
    guard let content = FileManager.default.contents(atPath: source) else { throw POSIXError(.ENOENT) }
    try content.write(to: URL(filePath: destination))
    chmod(destination, 0o755)
}

/// Waits until a condition holds; false if it does not within two minutes.
func becomesTrue(_ condition: () async throws -> Bool) async -> Bool {
    for _ in 0..<6000 {
        if (try? await condition()) == true { return true }
        try? await Task.sleep(for: .milliseconds(20))
    }
    return false
}
