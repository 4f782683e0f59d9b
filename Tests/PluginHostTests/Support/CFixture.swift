import Foundation
import Synchronization

/// Shared libraries that are built while the tests run, with the compiler that comes with Swift.
enum CFixture {
    struct BuildFailed: Error { let output: String }

    /// Made once, by whoever asks first; others of the same wait for that one alone.
    private final class Product: Sendable {
        let number: Int
        let path = Mutex<String?>(nil)

        init(_ number: Int) { self.number = number }
    }

    private static let products = Mutex<[String: Product]>([:])
    private static let folder: Result<TemporaryFolder, any Error> = Result {
        // A global is not deinitialized at exit.
        atexit { CFixture.removeAll() }
        return try TemporaryFolder()
    }

    private static func removeAll() {
        if let path = try? folder.get().path { try? FileManager.default.removeItem(atPath: path) }
    }

    /// A function of a module that describes nothing; enough for everything that does not call it.
    static let entry = "const void *plugin_module_entry(void) { return 0; }"

    /// Compiles C to a file and returns its path, in a folder of its own. The same request is built once in a process.
    ///
    /// - Parameters:
    ///   - flags: For the compiler, behind those that make a shared library that can include `plugin_abi.h`.
    ///   - name: Of the file.
    static func build(_ source: String, _ flags: [String] = [], name: String = "libfixture.so") throws -> String {
        try make(source, ["-shared", "-fPIC"] + flags, name)
    }

    /// The same for what is no shared library.
    static func program(_ source: String, _ flags: [String] = []) throws -> String {
        try make(source, flags, "program")
    }

    private static func make(_ source: String, _ flags: [String], _ name: String) throws -> String {
        let key = ([name, source] + flags).joined(separator: "\0")
        let product = products.withLock { products in
            let product = products[key] ?? Product(products.count)
            products[key] = product
            return product
        }
        return try product.path.withLock { known in
            if let path = known { return path }
            let path = try folder.get().folder("\(product.number)") + "/" + name
            try compile(source, flags + ["-o", path])
            known = path
            return path
        }
    }

    private static func compile(_ source: String, _ flags: [String]) throws {
        let include = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../Sources/CPluginABI/include").standardized.path
        let process = Process()
        process.executableURL = URL(fileURLWithPath: compiler)
        process.arguments = ["-std=c11", "-I", include, "-x", "c", "-", "-x", "none"] + flags
        let (input, output) = (Pipe(), Pipe())
        process.standardInput = input
        process.standardError = output
        process.standardOutput = output
        try process.run()
        try input.fileHandleForWriting.write(contentsOf: Data(source.utf8))
        try input.fileHandleForWriting.close()
        let text = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw BuildFailed(output: String(decoding: text, as: UTF8.self)) }
    }

    private static var compiler: String {
        let search = ProcessInfo.processInfo.environment["PATH"] ?? ""
        let candidates = search.split(separator: ":").map { "\($0)/swift" }
        let swift: String = candidates.first { access($0, X_OK) == 0 } ?? "/usr/bin/swift"
        let folder = URL(fileURLWithPath: swift).resolvingSymlinksInPath().deletingLastPathComponent().path
        return access("\(folder)/clang", X_OK) == 0 ? "\(folder)/clang" : "/usr/bin/clang"
    }
}

/// A library that SwiftPM has built beside the tests.
func builtLibrary(_ name: String) throws -> String {
    let executable = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    return URL(fileURLWithPath: executable).deletingLastPathComponent().appendingPathComponent(name).path
}
